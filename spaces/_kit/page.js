// What a page does that Gradio does not: it compares what was scored with the input as it is now, keeps the input in the
// fragment of the address, announces results, scrolls to the answer on a phone, copies, and keeps hatchings.
(() => {
  const saved = location.hash.slice(1);
  const announced = document.createElement("div");
  announced.className = "tm-sr";
  announced.setAttribute("role", "status");
  let isAwaited = false;
  let timer = null;
  // The file, then the boxes, then the settings; null until something changes.
  let input = null;

  // What is scored: the boxes ("0") or the file ("1"), with the settings.
  const tokenOf = (source, [file, ...values], boxes) =>
    source + JSON.stringify(source === "1" ? [file && file.path, ...values.slice(boxes)] : values);
  const answer = () => document.querySelector("#answer [data-token]");
  const compare = () => {
    const shown = answer(), said = document.querySelector("#answer [data-said]");
    const isOld = !!shown && !!input && shown.dataset.token !== tokenOf(shown.dataset.token[0], input.values, input.boxes);
    document.body.classList.toggle("tm-old", isOld);
    const text = (isOld ? "The input has changed since this was scored. " : "") + (said ? said.dataset.said : "");
    if (text !== announced.textContent) announced.textContent = text;
    if (isAwaited && shown && !isOld && innerWidth < 900) shown.scrollIntoView({ block: "start" });
    if (shown && !isOld) isAwaited = false;
  };
  // Keep the input in the address, once typing pauses: a browser allows few changes of it in a short time.
  const keep = () => {
    clearTimeout(timer);
    if (!input) return;
    const fragment = "#" + encodeURIComponent(JSON.stringify(input.values.slice(1)));
    if (fragment === location.hash) return;
    try { history.replaceState(history.state, "", fragment); } catch { return; }
    // The Hub shows a demo in a frame of its own page.
    if (parent !== window) parent.postMessage({ hash: fragment }, "https://huggingface.co");
  };
  addEventListener("pagehide", keep);
  // A link that is pasted into an open page; `replaceState` is no such event.
  addEventListener("hashchange", () => {
    input = null;
    location.reload();
  });
  window.tm = {
    // A change of the input.
    changed: (boxes, values) => {
      input = { boxes, values };
      compare();
      clearTimeout(timer);
      timer = setTimeout(keep, 300);
      return [];
    },
    // A run: its token, and the input that Gradio sends; without a source, of what was scored last. The first one, when
    // the page opens, is of the boxes if there is a text, and does not scroll.
    run: (boxes, settings, source, [, ...values]) => {
      input = { boxes, values: values.slice(0, 1 + boxes + settings) };
      isAwaited = source === "0" || source === "1";
      let of = source ?? (answer() ? answer().dataset.token[0] : "");
      if (of === "first") of = values.slice(1, 1 + boxes).some((text) => text && text.trim()) ? "0" : "";
      return [of && tokenOf(of, input.values, boxes), ...values];
    },
    // The input of the fragment, where it has the form of the present one; without a fragment, the example.
    restored: (example, values) => {
      if (!saved) return [...example, ...values.slice(example.length)];
      let kept = [];
      try { kept = JSON.parse(decodeURIComponent(saved)); } catch { /* Not ours. */ }
      // A box that was never shown has no value yet.
      const isLike = (value, i) => value === null || values[i] === null || typeof value === typeof values[i];
      const fits = Array.isArray(kept) && kept.length === values.length && kept.every(isLike);
      return fits ? kept : values;
    },
  };

  const begin = () => {
    // With a base, Plotly writes the URL of the page into its references to hatchings, which a new URL would break.
    document.querySelector("base")?.removeAttribute("href");
    document.body.append(announced);
    new MutationObserver(compare).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) begin();
  else addEventListener("DOMContentLoaded", begin);

  addEventListener("click", async (event) => {
    const button = event.target.closest(".tm-copy button");
    if (!button) return;
    await navigator.clipboard.writeText(button.parentElement.nextElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
})();
