// What a page does that Gradio does not: it announces results, marks old ones, says when the
// queue is full, and keeps hatchings.
(() => {
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
  window.demo = {
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
