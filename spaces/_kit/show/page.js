// What a page does that Gradio does not: it announces results, marks old ones, says when the
// queue is full, and keeps hatchings.
(() => {
  // Of the fragment of a link that holds texts, in characters.
  const LONGEST_LINK = 8192;
  const announced = document.createElement("div");
  announced.className = "tm-sr";
  announced.setAttribute("role", "status");
  const begin = () => {
    // With a base, Plotly writes the URL of the page into its references to hatchings, which a new URL would break.
    document.querySelector("base")?.removeAttribute("href");
    document.body.append(announced);
    new MutationObserver(() => {
      const said = document.querySelector("#answer [data-said]");
      const isOld = said && document.body.classList.contains("tm-old");
      const text = (isOld ? "The input has changed since this was scored. " : "") + (said ? said.dataset.said : "");
      if (text !== announced.textContent) announced.textContent = text;
    }).observe(document.body, { attributeFilter: ["class"], childList: true, subtree: true });
  };
  if (document.body) begin();
  else addEventListener("DOMContentLoaded", begin);

  // The result is of the source that was scored last, until that is edited.
  let last = null;
  const encode = (texts) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(texts))))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const decode = (text) => JSON.parse(new TextDecoder().decode(
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0))));
  window.demo = {
    share: (texts) => {
      const show = (update) => [{ __type__: "update", visible: true, ...update }];
      const url = new URL(window.location);
      // The argument list of a call is bounded.
      url.hash = texts.join("").length > LONGEST_LINK ? "" : `texts=${encode(texts)}`;
      if (!texts.join("").trim()) return show({ value: "", info: "There is no text yet." });
      if (!url.hash || url.hash.length > LONGEST_LINK)
        return show({ value: "", info: "The texts are too long for a link, which holds up to 8 kB. Send a file instead." });
      navigator.clipboard?.writeText(url.href).catch(() => {});
      return show({ value: url.href, info: "The texts are in the link itself, not on the server." });
    },
    shared: () => {
      const match = window.location.hash.match(/^#texts=([\w-]+)$/);
      if (!match) return;
      try {
        return decode(match[1]).map(String);
      } catch {
        return;
      }
    },
    scores: (source = last) => { last = source; document.body.classList.remove("tm-old"); },
    edits: (source) => document.body.classList.toggle("tm-old", source === last || document.body.matches(".tm-old")),
  };

  // Typed or pasted.
  addEventListener("input", (event) => {
    const source = event.target.matches("textarea") && event.target.closest("[id^=source-]");
    if (source) window.demo.edits(Number(source.id.slice("source-".length)));
  }, true);
  addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.closest(".tm-input")) return;
    event.preventDefault();
    [...document.querySelectorAll(".tm-input button.primary")].find((button) => button.offsetParent)?.click();
  }, true);

  const send = window.fetch;
  window.fetch = async (...request) => {
    const response = await send(...request);
    if ([429, 503].includes(response.status) && response.url.includes("/queue/join")) {
      const { detail } = await response.clone().json();
      const place = document.querySelector("#answer .tm-message, #answer .tm-answer");
      if (place) {
        const panel = document.createElement("section");
        panel.className = "tm-message tm-busy";
        panel.dataset.said = detail;
        panel.append(document.createElement("h2"), document.createElement("p"));
        panel.firstChild.textContent = "The demo is busy";
        panel.lastChild.textContent = detail;
        place.replaceWith(panel);
        document.body.classList.add("tm-old");
      }
      // Gradio has words of its own for these; of 422 it shows the detail.
      return new Response(JSON.stringify({ detail }), { status: 422 });
    }
    return response;
  };
})();
