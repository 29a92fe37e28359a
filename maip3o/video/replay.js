"use strict";
// Plays one episode: mountReplay(element, data) with the data of video/replay.py. Needs replay_draw.js; no network.

const KINDS = { float32: Float32Array, uint8: Uint8Array };
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

function unpack(packed) {
  const text = atob(packed.base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new KINDS[packed.kind](bytes.buffer);
}

function make(tag, parent, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text; // never markup: names come from people
  parent.append(node);
  return node;
}

class Replay {
  constructor(root, data) {
    this.data = data;
    this.time = 0; // in steps
    this.speed = 1;
    this.playing = false;
    this.chosen = null;
    this.arrays = Object.fromEntries(Object.entries(data.arrays).map(([name, packed]) => [name, unpack(packed)]));
    this.findEndings();
    this.build(root);
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    this.resize();
  }

  at(name, step, slot) { return this.arrays[name][step * this.data.slots + slot]; }

  get step() { return Math.min(Math.floor(this.time), this.data.steps); }

  // What became of each slot's latest car, as known before each step, and where every life ended.
  findEndings() {
    const { steps, slots } = this.data;
    this.status = new Uint8Array((steps + 1) * slots);
    this.endings = [];
    for (let step = 0; step < steps; step++) {
      for (let slot = 0; slot < slots; slot++) {
        const cause = this.at("cause", step, slot), here = step * slots + slot;
        if (this.at("active", step, slot)) this.status[here] = 0;
        this.status[here + slots] = cause || this.status[here];
        if (cause) {
          const row = this.at("present", step + 1, slot) ? step + 1 : step;
          this.endings.push({ step, slot, cause, x: this.at("x", row, slot), y: this.at("y", row, slot) });
        }
      }
    }
  }

  kind(cause) { return this.data.arrived === cause ? "arrived" : this.data.failures.includes(cause) ? "failed" : "other"; }

  build(root) {
    const data = this.data;
    root.classList.add("replay");
    root.replaceChildren();
    const stage = make("div", root, "replay-stage");
    this.canvas = make("canvas", make("div", stage, "replay-world"));
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${data.policy} on ${data.scenario}, seed ${data.seed}`);
    const side = make("div", stage, "replay-side");
    make("h3", side, "", data.policy);
    this.caption = make("p", side, "replay-dim");
    this.summary = make("p", side, "replay-summary");
    this.buildCars(side);
    this.buildDetail(side);
    this.buildControls(make("div", root, "replay-controls"));
    this.canvas.addEventListener("click", (event) => this.pick(event));
    root.tabIndex = 0;
    root.addEventListener("keydown", (event) => this.key(event));
  }

  buildCars(side) {
    const table = make("table", side, "replay-cars");
    const head = make("tr", make("thead", table));
    for (const label of ["car", "state", `predicted ${this.data.constraint} cost`]) make("th", head, "", label);
    const body = make("tbody", table);
    this.rows = this.data.colours.map((colour, slot) => {
      const row = make("tr", body);
      const badge = make("span", make("td", row), "replay-badge", String(slot));
      badge.style.background = colour;
      const state = make("td", row), cell = make("td", row), bar = make("span", cell, "replay-bar");
      const fill = make("i", bar), number = make("b", cell);
      make("em", bar).style.left = `${100 * Math.min(1, this.data.limit ?? 1)}%`;
      row.addEventListener("click", () => this.choose(this.chosen === slot ? null : slot));
      return { row, state, fill, number, bar };
    });
  }

  buildDetail(side) {
    this.detail = make("div", side, "replay-detail");
    this.detailText = make("dl", this.detail);
    this.chart = make("canvas", this.detail);
    this.hint = make("p", side, "replay-dim", "Click a car or a row: lidar, reward, cost, value. Space plays, arrows step.");
  }

  buildControls(bar) {
    this.button = make("button", bar, "replay-play", "▶");
    this.button.type = "button";
    this.button.addEventListener("click", () => this.play(!this.playing));
    const track = make("div", bar, "replay-track");
    this.slider = make("input", track);
    Object.assign(this.slider, { type: "range", min: 0, max: this.data.steps, step: 0.1, value: 0 });
    this.slider.setAttribute("aria-label", "time");
    this.slider.addEventListener("input", () => { this.play(false); this.seek(Number(this.slider.value)); });
    for (const ending of this.endings) {
      const mark = make("i", track, `replay-mark replay-${this.kind(ending.cause)}`);
      mark.style.left = `${(100 * (ending.step + 1)) / this.data.steps}%`;
      mark.title = `car ${ending.slot} ${this.data.causes[ending.cause]}`;
    }
    this.clock = make("span", bar, "replay-clock");
    const select = make("select", bar);
    select.setAttribute("aria-label", "speed");
    for (const speed of SPEEDS) make("option", select, "", `${speed}×`).value = String(speed);
    select.value = "1";
    select.addEventListener("change", () => { this.speed = Number(select.value); });
    this.select = select;
  }

  key(event) {
    if (event.target !== event.currentTarget && event.target.tagName !== "CANVAS") return;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === " ") this.play(!this.playing);
    else if (event.key in moves) { this.play(false); this.seek(Math.round(this.time) + moves[event.key]); }
    else if (event.key === "Escape") this.choose(null);
    else return;
    event.preventDefault();
  }

  play(on) {
    if (on && this.time >= this.data.steps) this.time = 0;
    this.playing = on;
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", on ? "pause" : "play");
    let last = performance.now();
    const tick = (now) => {
      if (!this.playing || this.ticker !== tick) return;
      this.seek(this.time + ((now - last) / 1000 / this.data.step_seconds) * this.speed);
      last = now;
      if (this.time >= this.data.steps) this.play(false); else requestAnimationFrame(tick);
    };
    this.ticker = tick;
    if (on) requestAnimationFrame(tick);
  }

  seek(time) {
    this.time = Math.max(0, Math.min(time, this.data.steps));
    this.slider.value = String(this.time);
    this.draw();
  }

  choose(slot) { this.chosen = slot; this.draw(); }

  pick(event) {
    const box = this.canvas.getBoundingClientRect();
    let best = null, near = Math.max(16, 2.6 * this.view.scale);
    for (const car of this.cars()) {
      const x = (car.x - this.view.left) * this.view.scale, y = (this.view.top - car.y) * this.view.scale;
      const away = Math.hypot(event.clientX - box.left - x, event.clientY - box.top - y);
      if (away < near) { near = away; best = car.slot; }
    }
    this.choose(best);
  }

  // Cars in the world at this.time, between two steps where both know the car.
  cars() {
    const cars = [], step = this.step, after = Math.min(step + 1, this.data.steps), share = this.time - step;
    for (let slot = 0; slot < this.data.slots; slot++) {
      if (!this.at("present", step, slot)) continue;
      const car = { slot, x: this.at("x", step, slot), y: this.at("y", step, slot), heading: this.at("heading", step, slot) };
      const dx = this.at("x", after, slot) - car.x, dy = this.at("y", after, slot) - car.y;
      if (this.at("present", after, slot) && Math.max(Math.abs(dx), Math.abs(dy)) < 6) {
        const turn = this.at("heading", after, slot) - car.heading;
        car.x += share * dx;
        car.y += share * dy;
        car.heading += share * Math.atan2(Math.sin(turn), Math.cos(turn));
      }
      cars.push(car);
    }
    return cars;
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.size = [Math.max(50, box.width), Math.max(50, box.height)];
    this.canvas.width = this.size[0] * ratio;
    this.canvas.height = this.size[1] * ratio;
    this.view = fitView(this.data.road.bounds, ...this.size);
    this.background = document.createElement("canvas");
    Object.assign(this.background, { width: this.canvas.width, height: this.canvas.height });
    const ctx = this.background.getContext("2d");
    ctx.scale(ratio, ratio);
    drawRoad(ctx, this.view, this.data.road);
    this.draw();
  }

  draw() {
    const ctx = this.canvas.getContext("2d"), ratio = window.devicePixelRatio || 1, step = this.step, data = this.data;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = INK.ground;
    ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
    ctx.drawImage(this.background, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const acting = (slot) => step < data.steps && this.at("active", step, slot);
    const latest = {};
    for (const route of data.routes) if (route.start <= step) latest[route.slot] = route;
    for (const route of Object.values(latest)) {
      if (acting(route.slot)) drawRoute(ctx, this.view, route.line, data.colours[route.slot], route.slot === this.chosen);
    }
    const cars = this.cars();
    for (const car of cars) if (car.slot === this.chosen && acting(car.slot) && data.rays) this.drawRays(ctx, car, step);
    for (const car of cars) {
      const wreck = this.kind(this.status[step * data.slots + car.slot]) === "failed";
      drawCar(ctx, this.view, car, data.car, data.colours[car.slot], wreck, car.slot === this.chosen);
    }
    for (const end of this.endings) {
      if (end.step < step) drawEnding(ctx, (end.x - this.view.left) * this.view.scale, (this.view.top - end.y) * this.view.scale, this.kind(end.cause));
    }
    for (const car of cars) if (acting(car.slot)) this.drawActing(ctx, car, step);
    this.describe(step);
  }

  drawRays(ctx, car, step) {
    const first = (step * this.data.slots + car.slot) * this.data.rays;
    const rays = this.arrays.lidar.subarray(first, first + this.data.rays);
    drawLidar(ctx, this.view, this.data.road, car, rays, this.data.lidar_range, this.data.colours[car.slot]);
  }

  drawActing(ctx, car, step) {
    const x = (car.x - this.view.left) * this.view.scale, y = (this.view.top - car.y) * this.view.scale;
    const risk = this.at("risk", step, car.slot);
    if (this.data.limit !== null && risk > this.data.limit) {
      ring(ctx, x, y, Math.max(13, 0.62 * this.data.car[0] * this.view.scale), this.riskColour(risk), 2);
    }
    drawTag(ctx, x, y, car.slot, this.data.colours[car.slot], this.data.car[1] * this.view.scale >= 18);
  }

  riskColour(risk) {
    const limit = this.data.limit ?? 1;
    return risk <= limit ? INK.good : risk <= 2 * limit ? INK.warn : INK.bad;
  }
}

function mountReplay(element, data) {
  const replay = new Replay(element, data);
  element.replay = replay;
  return replay;
}
