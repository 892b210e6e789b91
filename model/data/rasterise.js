// Draws the vector sources as square RGBA pictures with a transparent border.
//
//   node rasterise.js --out model/work/raw128/0 --size 128 --shard 0/2
//
// writes 0.rgba, the pictures one after another (size*size*4 bytes each, alpha
// not premultiplied), and 0.json, one record for each picture in the same
// order. A picture fills size less a border of size/32 on each side.
'use strict';

const fs = require('fs');
const path = require('path');
const { parseArgs } = require('util');
const sharp = require('sharp');

const work = path.join(__dirname, '..', 'work');
const iconDirectory = path.join(work, 'npm', 'iconify-json-2.2.535', 'package', 'json');
const clipartDirectory = path.join(work, 'openclipart', 'usr', 'share', 'openclipart', 'svg');
const transparent = { r: 0, g: 0, b: 0, alpha: 0 };

// Larger files are left out, so that no single drawing takes long.
const largestDrawing = 600000;

const usage = `usage: node rasterise.js --out PREFIX [options]
  --out PREFIX     write PREFIX.rgba and PREFIX.json
  --size N         width and height of a picture (default 128)
  --sets A,B       only these sets (default: every vector set of sets.json)
  --shard I/N      every Nth source, beginning with the Ith (default 0/1)
  --list FILE      only the sources in FILE, one "set<TAB>name" on each line`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      size: { type: 'string', default: '128' },
      sets: { type: 'string' },
      shard: { type: 'string', default: '0/1' },
      list: { type: 'string' },
    },
  });
  const size = Number(values.size);
  const shard = values.shard.match(/^(\d+)\/(\d+)$/);
  if (!values.out || !(size >= 32) || size % 32 !== 0 || !shard || +shard[1] >= +shard[2]) {
    console.error(usage);
    process.exit(2);
  }
  return {
    out: values.out,
    size,
    sets: values.sets ? values.sets.split(',') : vectorSets(),
    shard: Number(shard[1]),
    shards: Number(shard[2]),
    wanted: values.list ? readList(values.list) : null,
  };
}

// vectorSets gives the names of the sets that are drawn here. The 3D emoji
// come as pictures: build.py reads them itself.
function vectorSets() {
  const sets = JSON.parse(fs.readFileSync(path.join(__dirname, 'sets.json'), 'utf8'));
  return sets.map((set) => set.name).filter((name) => name !== 'fluent-3d');
}

function readList(file) {
  return new Set(fs.readFileSync(file, 'utf8').split('\n').filter((line) => line !== ''));
}

// hash is FNV-1a. It picks the skin tone of an emoji, so that every tone
// appears about as often and the choice is the same in every run.
function hash(text) {
  let h = 2166136261;
  for (const c of text) {
    h ^= c.charCodeAt(0);
    h = Math.imul(h, 16777619) >>> 0;
  }
  return h;
}

const tones = ['light', 'medium-light', 'medium', 'medium-dark', 'dark'];
const toneSuffix = /-(light|medium-light|medium|medium-dark|dark)(-skin-tone)?$/;
const emojiSets = /fluent-emoji|noto|twemoji|emojione/;
const people = /^(kiss|couple|family|(people|women|men|woman-and-man)-holding)/;

// wantedIcon leaves out what would fill the data set with near copies: all
// skin tones of an emoji but one, people in several tones, and the same flags
// in every set.
function wantedIcon(set, name, icons) {
  if (set === 'circle-flags') {
    return /^[a-z]{2}$/.test(name);
  }
  if (!emojiSets.test(set)) {
    return true;
  }
  if ((name.match(/(light|medium|dark)-skin-tone/g) || []).length > 1) {
    return false;
  }
  const tone = name.match(toneSuffix);
  if (tone && (tone[2] || set.startsWith('fluent'))) {
    const base = name.replace(toneSuffix, '');
    if (icons[base]) {
      return tones[hash(set + base) % tones.length] === tone[1];
    }
  }
  if (/-skin-tone/.test(name) && !tone) {
    return false;
  }
  if (/flag-for|^flag-/.test(name) && set !== 'twemoji') {
    return false;
  }
  return !(people.test(name) && /(light|medium|dark)/.test(name));
}

// largestOnly keeps one icon of those that differ only in a size suffix.
function largestOnly(names) {
  const best = new Map();
  for (const name of names) {
    const parts = name.match(/^(.*)-(\d+)$/);
    if (!parts) {
      continue;
    }
    const size = Number(parts[2]);
    const known = best.get(parts[1]);
    if (!known || known.size < size) {
      best.set(parts[1], { size, name });
    }
  }
  return [...best.values()].map((entry) => entry.name);
}

// iconSources lists the icons of one iconify set. A source is { record, load }:
// what is known of it before it is read, and a function that gives { svg,
// width, height, details }. Width, height and details may be missing.
function iconSources(set) {
  const data = JSON.parse(fs.readFileSync(path.join(iconDirectory, `${set}.json`), 'utf8'));
  const categories = {};
  for (const [category, members] of Object.entries(data.categories || {})) {
    for (const name of members) {
      categories[name] = (categories[name] || []).concat(category);
    }
  }
  let names = Object.keys(data.icons);
  if (set === 'fluent-color') {
    names = largestOnly(names);
  }
  const sources = [];
  for (const name of names) {
    const icon = data.icons[name];
    if (icon.hidden || !wantedIcon(set, name, data.icons)) {
      continue;
    }
    const width = icon.width ?? data.width ?? 16;
    const height = icon.height ?? data.height ?? 16;
    const box = `${icon.left ?? 0} ${icon.top ?? 0} ${width} ${height}`;
    const open =
      '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ' +
      `width="${width}" height="${height}" viewBox="${box}" color="#000">`;
    sources.push({
      record: { set, name, cats: categories[name] || [] },
      load: () => ({ svg: Buffer.from(`${open}${icon.body}</svg>`), width, height }),
    });
  }
  return sources;
}

// svgFiles lists the drawings below directory in a fixed order. Links are
// left out: they are second names of drawings that are there.
function svgFiles(directory) {
  const found = [];
  const entries = fs.readdirSync(directory, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const full = path.join(directory, entry.name);
    if (entry.isDirectory()) {
      found.push(...svgFiles(full));
    } else if (entry.isFile() && entry.name.endsWith('.svg')) {
      found.push(full);
    }
  }
  return found;
}

// clipartSources lists the drawings of openclipart.
function clipartSources() {
  const all = svgFiles(clipartDirectory);
  const files = all.filter((file) => fs.statSync(file).size <= largestDrawing);
  return files.map((file) => ({
    record: { set: 'openclipart', name: path.relative(clipartDirectory, file) },
    load: () => {
      const bytes = fs.readFileSync(file);
      return { ...withPlainSize(bytes), details: clipartMetadata(bytes.toString('utf8')) };
    },
  }));
}

// unitsPerInch is what programs of the time took a user unit to be: 90 in an
// inch, where today's standard says 96.
const unitsPerInch = 90;
const inches = { in: 1, pt: 1 / 72, pc: 1 / 6, mm: 1 / 25.4, cm: 1 / 2.54 };

// userUnits converts a length such as "150pt", or gives NaN: for a percentage
// or where there is none.
function userUnits(length) {
  const parts = (length || '').trim().match(/^([\d.]+(?:e[+-]?\d+)?)(px|in|pt|pc|mm|cm)?$/i);
  if (!parts) {
    return NaN;
  }
  const unit = (parts[2] || 'px').toLowerCase();
  return Number(parts[1]) * (unit === 'px' ? 1 : inches[unit] * unitsPerInch);
}

// withPlainSize gives a drawing a size in user units and a view box. Without
// them the renderer scales a page measured in points, but not what is on it,
// and the drawing ends up small in a corner. The bytes are read as Latin-1,
// which keeps them whatever their encoding is.
function withPlainSize(bytes) {
  const text = bytes.toString('latin1');
  const root = text.match(/<(?:svg:)?svg\b[^>]*>/);
  if (!root) {
    return { svg: bytes };
  }
  const attribute = (name) => {
    const found = root[0].match(new RegExp(`\\s${name}\\s*=\\s*["']([^"']*)["']`));
    return found ? found[1] : undefined;
  };
  const box = (attribute('viewBox') || '').trim().split(/[\s,]+/).map(Number);
  let [left, top, width, height] = box;
  if (box.length !== 4 || box.some(Number.isNaN)) {
    [left, top] = [0, 0];
    [width, height] = [userUnits(attribute('width')), userUnits(attribute('height'))];
  }
  if (!(width > 0) || !(height > 0)) {
    return { svg: bytes };
  }
  const bare = root[0].replace(/\s(width|height|viewBox)\s*=\s*["'][^"']*["']/g, '');
  const size = ` width="${width}" height="${height}" viewBox="${left} ${top} ${width} ${height}"`;
  const start = bare.replace(/^<(?:svg:)?svg\b/, (tag) => tag + size);
  return { svg: Buffer.from(text.replace(root[0], () => start), 'latin1'), width, height };
}

// clipartMetadata reads title, keywords and author from the metadata that a
// drawing carries.
function clipartMetadata(text) {
  const title = text.match(/<dc:title[^>]*>\s*([^<]+)</);
  const subject = text.match(/<dc:subject>([\s\S]*?)<\/dc:subject>/);
  const creator = text.match(/<dc:creator[^>]*>([\s\S]*?)<\/dc:creator>/);
  const author = creator && creator[1].match(/<dc:title[^>]*>\s*([^<]+)</);
  const words = subject ? [...subject[1].matchAll(/<rdf:li[^>]*>\s*([^<]+?)\s*</g)] : [];
  return {
    title: title ? title[1].trim() : '',
    kw: words.map((match) => match[1]),
    author: author ? author[1].trim() : '',
  };
}

// draw renders at twice the final size and scales down, for smooth edges.
async function draw(loaded, size) {
  const { svg } = loaded;
  const border = size / 32;
  const inner = size - 2 * border;
  let { width, height } = loaded;
  if (!width) {
    ({ width, height } = await sharp(svg, { density: 72 }).metadata());
  }
  const density = Math.max(1, Math.min(20000, (72 * 2 * inner) / Math.max(width, height)));
  const pixels = await sharp(svg, { density, limitInputPixels: 4e7 })
    .resize(inner, inner, { fit: 'contain', background: transparent })
    .extend({ top: border, bottom: border, left: border, right: border, background: transparent })
    .ensureAlpha()
    .toColourspace('srgb')
    .raw()
    .toBuffer();
  if (pixels.length !== size * size * 4) {
    throw new Error(`${pixels.length} bytes for a picture of ${size}x${size}`);
  }
  return pixels;
}

// coverage is the share of the picture that is not transparent.
function coverage(pixels) {
  let sum = 0;
  for (let i = 3; i < pixels.length; i += 4) {
    sum += pixels[i];
  }
  return sum / 255 / (pixels.length / 4);
}

// drawSet draws this shard's part of one set and returns the records of the
// pictures written. A source that cannot be drawn, or shows nothing, is
// counted and left out.
async function drawSet(set, options, output) {
  const started = Date.now();
  const sources = set === 'openclipart' ? clipartSources() : iconSources(set);
  const least = set === 'openclipart' ? 0.01 : 0.005;
  const records = [];
  let bad = 0;
  for (let i = options.shard; i < sources.length; i += options.shards) {
    const source = sources[i];
    if (options.wanted && !options.wanted.has(`${set}\t${source.record.name}`)) {
      continue;
    }
    try {
      const loaded = source.load();
      const pixels = await draw(loaded, options.size);
      const cov = coverage(pixels);
      if (cov < least) {
        bad++;
        continue;
      }
      fs.writeSync(output, pixels);
      records.push({ ...source.record, ...loaded.details, cov: Number(cov.toFixed(3)) });
    } catch {
      bad++;
    }
  }
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(`${set}: ${records.length} pictures, ${bad} left out, ${seconds} s`);
  return records;
}

async function main() {
  const options = readOptions();
  // The shards are the parallelism; libvips' own threads would only get in
  // their way.
  sharp.concurrency(1);
  sharp.cache(false);
  fs.mkdirSync(path.dirname(options.out), { recursive: true });
  const output = fs.openSync(`${options.out}.rgba`, 'w');
  const records = [];
  for (const set of options.sets) {
    records.push(...(await drawSet(set, options, output)));
  }
  fs.closeSync(output);
  fs.writeFileSync(`${options.out}.json`, JSON.stringify(records));
}

main();
