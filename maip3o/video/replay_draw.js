"use strict";
// Draws one episode of a replay on a canvas. World metres (x right, y up) become pixels through `view`.

const INK = {
  ground: "#11151c", road: "#2e343f", edge: "#4a5260", white: "#969eaa", yellow: "#cda33c",
  good: "#4ac97e", bad: "#ff5252", warn: "#ffb02e", text: "#e8ecf2",
};

function fitView(bounds, width, height) {
  const [x0, y0, x1, y1] = bounds, margin = 2.5;
  const scale = Math.min(width / (x1 - x0 + 2 * margin), height / (y1 - y0 + 2 * margin));
  return { scale, left: (x0 + x1) / 2 - width / scale / 2, top: (y0 + y1) / 2 + height / scale / 2 };
}

function trace(ctx, view, points, closed) {
  ctx.beginPath();
  addPath(ctx, view, points);
  if (closed) ctx.closePath();
}

function addPath(ctx, view, points) {
  for (let i = 0; i < points.length; i += 2) {
    const x = (points[i] - view.left) * view.scale, y = (view.top - points[i + 1]) * view.scale;
    if (i) ctx.lineTo(x, y); else ctx.moveTo(x, y);
  }
}

function drawRoad(ctx, view, road) {
  ctx.lineJoin = "round";
  ctx.strokeStyle = INK.edge;
  ctx.lineWidth = Math.max(1, 0.9 * view.scale);
  for (const lane of road.lanes) { trace(ctx, view, lane, true); ctx.stroke(); }
  ctx.fillStyle = ctx.strokeStyle = INK.road;
  ctx.lineWidth = 1;
  for (const lane of road.lanes) { trace(ctx, view, lane, true); ctx.fill(); ctx.stroke(); }
  ctx.lineWidth = Math.max(1, 0.18 * view.scale);
  for (const line of road.lines) {
    ctx.strokeStyle = line.kind === "yellow" ? INK.yellow : INK.white;
    ctx.setLineDash(line.kind === "white_broken" ? [3 * view.scale, 4.5 * view.scale] : []);
    trace(ctx, view, line.points, false);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

function drawRoute(ctx, view, line, colour, strong) {
  if (line.length < 4) return;
  ctx.globalAlpha = strong ? 0.95 : 0.45;
  ctx.strokeStyle = colour;
  ctx.lineWidth = Math.max(strong ? 3 : 2, 0.2 * view.scale);
  trace(ctx, view, line, false);
  ctx.stroke();
  ctx.globalAlpha = 1;
  const x = (line[line.length - 2] - view.left) * view.scale, y = (view.top - line[line.length - 1]) * view.scale;
  const radius = Math.max(6, view.scale);
  disc(ctx, x, y, radius + 2, INK.ground);
  ring(ctx, x, y, radius, colour, 2);
  disc(ctx, x, y, radius * 0.45, colour);
}

function disc(ctx, x, y, radius, colour) {
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.fill();
}

function ring(ctx, x, y, radius, colour, width) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.stroke();
}

// The free road that a car's lidar sees, and a dot where a ray ends on something. rays: bytes, 255 = the whole reach.
function drawLidar(ctx, view, road, car, rays, reach, colour) {
  const points = [], hits = [];
  for (let i = 0; i < rays.length; i++) {
    const angle = car.heading + (2 * Math.PI * i) / rays.length, far = (rays[i] / 255) * reach;
    const x = car.x + far * Math.cos(angle), y = car.y + far * Math.sin(angle);
    points.push(x, y);
    if (rays[i] < 255) hits.push([x, y]);
  }
  ctx.save();
  ctx.globalAlpha = 0.2;
  ctx.fillStyle = colour;
  trace(ctx, view, points, true);
  ctx.clip();
  ctx.beginPath();
  for (const lane of road.lanes) addPath(ctx, view, lane); // one path: lanes that overlap are tinted once
  ctx.fill();
  ctx.restore();
  for (const [x, y] of hits) disc(ctx, (x - view.left) * view.scale, (view.top - y) * view.scale, 2.2, "#ffffff");
}

// Body and windows in units of half a car, nose towards +x.
const BODY = [-1, -0.8, -0.93, -1, 0.7, -1, 0.95, -0.72, 1, -0.3, 1, 0.3, 0.95, 0.72, 0.7, 1, -0.93, 1, -1, 0.8];
const WINDOWS = [[0.12, -0.78, 0.46, -0.62, 0.46, 0.62, 0.12, 0.78], [-0.62, -0.62, -0.44, -0.72, -0.44, 0.72, -0.62, 0.62]];

function drawCar(ctx, view, car, size, colour, wreck, chosen) {
  const cos = Math.cos(car.heading), sin = Math.sin(car.heading);
  const place = (shape) => {
    const points = [];
    for (let i = 0; i < shape.length; i += 2) {
      const x = (shape[i] * size[0]) / 2, y = (shape[i + 1] * size[1]) / 2;
      points.push(car.x + cos * x - sin * y, car.y + sin * x + cos * y);
    }
    return points;
  };
  ctx.globalAlpha = wreck ? 0.55 : 1;
  ctx.fillStyle = colour;
  trace(ctx, view, place(BODY), true);
  ctx.fill();
  ctx.strokeStyle = wreck ? INK.bad : chosen ? "#ffffff" : "#0a0c10";
  ctx.lineWidth = chosen ? 2 : 1;
  ctx.stroke();
  ctx.fillStyle = "rgba(8, 10, 14, 0.75)";
  for (const window of WINDOWS) { trace(ctx, view, place(window), true); ctx.fill(); }
  ctx.globalAlpha = 1;
}

function drawTag(ctx, x, y, slot, colour, onRoof) {
  if (!onRoof) { x += 12; y -= 12; }
  disc(ctx, x, y, 8.5, "rgba(12, 14, 18, 0.85)");
  ring(ctx, x, y, 8.5, colour, 1);
  ctx.fillStyle = "#ffffff";
  ctx.font = "bold 11px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(String(slot), x, y + 0.5);
}

function drawEnding(ctx, x, y, kind) {
  const colour = { arrived: INK.good, failed: INK.bad, other: INK.warn }[kind];
  disc(ctx, x, y, 9.5, INK.ground);
  ring(ctx, x, y, 8.5, colour, 2);
  const strokes = { arrived: [-4, 0, -1, 3, 4, -3], failed: [-3, -3, 3, 3, NaN, NaN, -3, 3, 3, -3], other: [0, -4, 0, 0, 3, 2] }[kind];
  ctx.beginPath();
  let pen = false;
  for (let i = 0; i < strokes.length; i += 2) {
    if (Number.isNaN(strokes[i])) { pen = false; continue; }
    if (pen) ctx.lineTo(x + strokes[i], y + strokes[i + 1]); else ctx.moveTo(x + strokes[i], y + strokes[i + 1]);
    pen = true;
  }
  ctx.stroke();
}
