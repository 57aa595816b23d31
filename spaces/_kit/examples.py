"""Sample texts that the demos share; a Space has no `text_metrics`, so the sentences of its demo are repeated here."""

# Sentences of ours for the concepts walk, dog, take, park and couple of the CommonGen task.
DIFFERENT = (
    "The couple walk in the park and take photos of a dog.",
    "The couple walk in the park when a thief runs up to take their dog.",
    "The couple take a taxi to the park because their old dog cannot walk.",
    "The couple take a vote to keep every dog off the walk in the park.",
)
PARAPHRASES = (
    "The couple take their dog for a walk in the park.",
    "A couple is taking the dog to walk at a park.",
    "At the park, two partners walk a dog they have taken along.",
    "Their dog was taken on a park walk by this couple.",
)
SHUFFLED = (
    "park take the couple walk in dog the of photos a and.",
    "thief the dog in walk couple park when a their take up to runs.",
    "walk taxi dog the cannot couple to old park take their a because.",
    "dog vote every the in walk keep take off a couple park to the.",
)
WAYS_TO_WAKE_UP = (
    "Set two alarms and put the second one across the room.",
    "Go to bed an hour earlier than you think you need to.",
    "Ask a friend to call you at six and not to take no for an answer.",
    "Leave the curtains open so that the sun falls on your face.",
    "Use an alarm that is out of reach, so that you must stand up.",
    "Have coffee ready on a timer: the smell gets you out of bed.",
)
