"""Classes of texts written out as plain loops: what the fast core is compared with."""


def complete_classes(n, same, content):
    """Each text, in order of content, joins the first class whose members are all the same as it."""
    order = sorted(range(n), key=lambda i: content[i])
    return first_match(order, lambda i, members: all(same(i, j) for j in members))


def greedy_classes(n, same):
    """Each text, in the order given, joins the first class whose first member is the same as it.

    NoveltyBench's loop partitions so (src/partition.py). Its code of 2025 writes the largest of these labels as the
    number of classes of a prompt, which is one too few.
    """
    return first_match(range(n), lambda i, members: same(i, members[0]))


def first_match(order, joins):
    """Let each text join the first class that it fits, or found one; returns labels numbered by first appearance."""
    classes = []
    for i in order:
        fitting = next((members for members in classes if joins(i, members)), None)
        if fitting is None:
            classes.append([i])
        else:
            fitting.append(i)
    # The class whose first text comes first has number 0.
    labels = [0] * len(order)
    for number, members in enumerate(sorted(classes, key=min)):
        for i in members:
            labels[i] = number
    return labels
