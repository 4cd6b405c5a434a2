const connection = document.getElementById("connection");
if (connection && connection.dataset.live && window.EventSource) {
  const shown = {};
  const source = new EventSource(connection.dataset.live);
  source.onopen = () => { connection.textContent = "live"; connection.className = "dim small"; };
  source.onerror = () => { connection.textContent = "the service does not answer; trying again"; connection.className = "small lost"; };
  source.onmessage = (event) => {
    if (document.hidden) return;
    const parts = JSON.parse(event.data);
    for (const name of Object.keys(parts)) {
      // The server made these from pieces that escape all text; what did not change keeps its place and selection.
      if (shown[name] !== parts[name]) {
        shown[name] = parts[name];
        const place = document.getElementById(name);
        // What a reader opened stays open, and what was pushed aside stays there.
        const open = [...place.querySelectorAll("details[id][open]")].map((one) => one.id);
        const aside = [...place.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
        place.innerHTML = parts[name];
        for (const id of open) document.getElementById(id)?.setAttribute("open", "");
        [...place.querySelectorAll(".scroll")].forEach((one, at) => { one.scrollLeft = aside[at] ?? 0; });
      }
    }
  };
  addEventListener("pagehide", () => source.close());
}
