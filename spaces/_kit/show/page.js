// What a page does that Gradio does not: it announces results, says when the queue is full, and keeps hatchings.
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
      const text = said ? said.dataset.said : "";
      if (text !== announced.textContent) announced.textContent = text;
    }).observe(document.body, { childList: true, subtree: true });
  };
  if (document.body) begin();
  else addEventListener("DOMContentLoaded", begin);

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
      }
      // Gradio has words of its own for these; of 422 it shows the detail.
      return new Response(JSON.stringify({ detail }), { status: 422 });
    }
    return response;
  };
})();
