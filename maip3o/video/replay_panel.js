"use strict";
// The words and numbers beside the map of a replay: what the episode amounts to so far, and the chosen car.

Replay.prototype.describe = function describe(step) {
  const { data } = this, { slots } = data;
  this.caption.textContent = `${data.scenario.replaceAll("_", " ")} · seed ${data.seed}`;
  this.clock.textContent = `${(this.time * data.step_seconds).toFixed(1)} / ${(data.steps * data.step_seconds).toFixed(1)} s`;
  let total = 0;
  for (let i = 0; i < step * slots; i++) total += this.arrays.reward[i];
  const ended = this.endings.filter((end) => end.step < step);
  const count = (kind) => ended.filter((end) => this.kind(end.cause) === kind).length;
  const cost = this.costs(step);
  const limit = data.limit === null ? "" : ` (limit ${data.limit.toFixed(2)})`;
  this.summary.textContent = `return ${total.toFixed(0)} · ${count("arrived")} arrived · ${count("failed")} eliminated · `
    + `${data.constraint} cost per car ${cost.toFixed(2)}${limit}`;
  this.summary.classList.toggle("replay-over", data.limit !== null && cost > data.limit);
  this.rows.forEach((row, slot) => this.describeRow(row, slot, step));
  this.describeChosen(step);
};

Replay.prototype.costs = function costs(step) {
  const { slots } = this.data;
  let cost = 0, lives = 0;
  for (let slot = 0; slot < slots; slot++) {
    let alive = false;
    for (let t = 0; t <= step && t < this.data.steps; t++) {
      const active = this.at("active", t, slot) === 1;
      if (active && !alive) lives += 1;
      if (active && t < step) cost += this.at("cost", t, slot);
      alive = active && this.at("cause", t, slot) === 0;
    }
  }
  return lives ? cost / lives : 0;
};

Replay.prototype.describeRow = function describeRow(row, slot, step) {
  const { data } = this, cause = this.status[step * data.slots + slot];
  const acting = step < data.steps && this.at("active", step, slot) === 1;
  row.row.classList.toggle("replay-chosen", slot === this.chosen);
  row.state.textContent = acting ? `${(3.6 * this.at("speed", step, slot)).toFixed(0)} km/h` : data.causes[cause];
  row.state.className = acting ? "" : `replay-${this.kind(cause)}`;
  const risk = acting ? this.at("risk", step, slot) : NaN;
  row.bar.style.visibility = Number.isFinite(risk) ? "visible" : "hidden";
  row.number.textContent = Number.isFinite(risk) ? Math.max(0, risk).toFixed(2) : "";
  if (!Number.isFinite(risk)) return;
  row.fill.style.width = `${100 * Math.max(0, Math.min(1, risk))}%`;
  row.fill.style.background = row.number.style.color = this.riskColour(risk);
};

Replay.prototype.describeChosen = function describeChosen(step) {
  const slot = this.chosen, { data } = this;
  this.detail.hidden = slot === null;
  this.hint.hidden = slot !== null;
  if (slot === null) return;
  let earned = 0;
  for (let t = 0; t < Math.min(step + 1, data.steps); t++) earned += this.at("reward", t, slot);
  const acting = step < data.steps && this.at("active", step, slot) === 1;
  const show = (name, digits) => (acting && Number.isFinite(this.at(name, step, slot)) ? this.at(name, step, slot).toFixed(digits) : "–");
  const facts = [
    ["car", String(slot)], ["reward", show("reward", 2)], ["reward so far", earned.toFixed(1)],
    ["cost", show("cost", 2)], [`predicted ${data.constraint} cost`, show("risk", 3)], ["value", show("value", 1)],
  ];
  this.detailText.replaceChildren();
  for (const [label, value] of facts) { make("dt", this.detailText, "", label); make("dd", this.detailText, "", value); }
  this.drawChart(slot, step);
};

// Predicted cost (amber) and value (blue) of the chosen car over the episode, with a cursor at now.
Replay.prototype.drawChart = function drawChart(slot, step) {
  const ratio = window.devicePixelRatio || 1, width = this.detail.clientWidth || 280, height = 84;
  Object.assign(this.chart, { width: width * ratio, height: height * ratio });
  Object.assign(this.chart.style, { width: `${width}px`, height: `${height}px` });
  const ctx = this.chart.getContext("2d"), { steps } = this.data;
  ctx.scale(ratio, ratio);
  ctx.fillStyle = "#181d26";
  ctx.fillRect(0, 0, width, height);
  [["value", "#56a0ff", 12], ["risk", INK.warn, width / 2]].forEach(([name, colour, left]) => {
    let low = Infinity, high = -Infinity;
    for (let t = 0; t < steps; t++) {
      const y = this.at(name, t, slot);
      if (Number.isFinite(y)) { low = Math.min(low, y); high = Math.max(high, y); }
    }
    if (name === "risk") { low = 0; high = Math.max(high, this.data.limit ?? 0, 0.01); }
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    let pen = false;
    for (let t = 0; t < steps; t++) {
      const y = this.at(name, t, slot);
      if (!Number.isFinite(y)) { pen = false; continue; }
      const px = (t / steps) * width, py = height - 6 - ((y - low) / (high - low || 1)) * (height - 28);
      if (pen) ctx.lineTo(px, py); else ctx.moveTo(px, py);
      pen = true;
    }
    ctx.stroke();
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillText(`${name === "risk" ? "predicted cost" : "value"} ${low.toFixed(2)} … ${high.toFixed(2)}`, left, 13);
  });
  ctx.fillStyle = "#ffffff";
  ctx.fillRect((step / steps) * width, 18, 1, height - 18);
};
