// Filters of the tables of results: a menu for network, loss and training, from what rows name.
document.addEventListener("DOMContentLoaded", () => {
  const headed = (table) => [...table.querySelectorAll("th")].map((cell) => cell.textContent.trim());
  const tables = [...document.querySelectorAll("table")].filter(
    (table) => headed(table).slice(0, 3).join() === "network,loss,trained by"
  );
  if (!tables.length) return;
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  const named = (row, column) => row.cells[column].textContent.split(",").map((one) => one.trim());
  const found = document.createElement("output");
  const menus = ["network", "loss", "trained by"].map((name, column) => {
    const menu = document.createElement("select");
    menu.setAttribute("aria-label", name);
    const kinds = [...new Set(rows.flatMap((row) => named(row, column)))].sort();
    menu.append(new Option(`${name}: all`, ""));
    kinds.filter((kind) => kind !== "any").forEach((kind) => menu.append(new Option(kind, kind)));
    menu.addEventListener("change", choose);
    return menu;
  });
  function choose() {
    const fits = (row) =>
      menus.every(({ value }, column) => {
        const kinds = named(row, column);
        return !value || kinds.includes(value) || kinds.includes("any");
      });
    rows.forEach((row) => (row.hidden = !fits(row)));
    tables.forEach((table) => {
      const shown = rows.some((row) => !row.hidden && table.contains(row));
      const section = table.closest("section");
      section.hidden = !shown;
      const entry = document.querySelector(`.page-toc a[href="#${section.id}"]`);
      if (entry) entry.parentElement.hidden = !shown;
    });
    const left = rows.filter((row) => !row.hidden).length;
    found.textContent = `${left} of ${rows.length} results${left ? "" : ": none names all of these"}`;
  }
  const bar = document.createElement("p");
  bar.className = "filters";
  bar.append(...menus, found);
  tables[0].closest("section").before(bar);
  choose();
});
