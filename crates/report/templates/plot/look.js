// How marks look: what the style sheet says of their classes, so that drawings with and without script are alike.

const SVG = "http://www.w3.org/2000/svg";
const MEASURED = /(^| )measured( |$)/;

/** Looks of classes within one static drawing, each looked up once for a colour scheme. */
class Looks {
  #host;
  #known = new Map();

  constructor(svg) {
    this.#host = svg;
  }

  /** Colours, width and dashes of an element with these classes. */
  of(classes, tag = "path") {
    const key = `${tag} ${classes}`;
    let look = this.#known.get(key);
    if (!look) this.#known.set(key, look = this.#read(classes, tag));
    return look;
  }

  /** To be looked up anew. */
  forget() {
    this.#known.clear();
  }

  #read(classes, tag) {
    const element = document.createElementNS(SVG, tag);
    element.setAttribute("class", classes);
    this.#host.append(element);
    const style = getComputedStyle(element);
    const numbers = (text) => (text === "none" ? [] : text.split(/[ ,]+/).map(parseFloat));
    const look = {
      stroke: colour(style.stroke, style.strokeOpacity),
      fill: colour(style.fill, style.fillOpacity),
      width: parseFloat(style.strokeWidth) || 1,
      dash: numbers(style.strokeDasharray),
      cap: style.strokeLinecap,
      join: style.strokeLinejoin,
      font: `${style.fontStyle} ${style.fontSize} ${style.fontFamily}`,
    };
    element.remove();
    return look;
  }
}

/** A colour with its opacity; null for none. */
function colour(paint, opacity) {
  if (paint === "none") return null;
  const parts = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(paint);
  return parts && Number(opacity) < 1 ? `rgb(${parts[1]} ${parts[2]} ${parts[3]} / ${opacity})` : paint;
}

/** Prepares a canvas for lines of a look; whether they are to be seen. */
function takeStroke(ctx, look) {
  if (!look.stroke) return false;
  ctx.strokeStyle = look.stroke;
  ctx.lineWidth = look.width;
  ctx.lineCap = look.cap;
  ctx.lineJoin = look.join;
  ctx.setLineDash(look.dash);
  return true;
}

/** Draws a path as SVG would: filled, then outlined, each where its look says so. */
function drawPath(ctx, path, look) {
  if (look.fill) {
    ctx.fillStyle = look.fill;
    ctx.fill(path);
  }
  if (takeStroke(ctx, look)) ctx.stroke(path);
}

/** An element with a class and a text. */
function made(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  return element;
}
