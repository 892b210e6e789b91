import {
  isEmpty,
  type Leaf,
  leavesOf,
  type MediaValue,
  type Medium,
  mediaOf,
  mediumOf,
  type Node,
  sameValue,
  takesMany,
  type Value,
  type Values,
} from './fields';

/** fieldFor returns the field that takes a file of a kind: the first empty one, or else the first that fits. */
export function fieldFor(nodes: readonly Node[], values: Values, type: Medium, mime?: string): Leaf | undefined {
  const fitting = leavesOf(nodes).filter((field) => mediumOf(field) === type && (!mime || accepts(field, mime)));
  const room = (field: Leaf) =>
    takesMany(field)
      ? mediaOf(values[field.fieldKey]).length < (field.display.max_items ?? 12)
      : isEmpty(values[field.fieldKey]);

  return fitting.find(room) ?? fitting[0];
}

/** accepts reports whether a field takes files of a MIME type; an unknown type is left to the service. */
export function accepts(field: Leaf, mime: string): boolean {
  const list = field.display.accept;
  if (!mime) {
    return true;
  }
  if (list) {
    return list.includes(mime);
  }
  const start = { IMG: 'image/', VID: 'video/', AUDIO: 'audio/', ASSET_3D: 'model/', TEXT: 'text/' };

  return mime.startsWith(start[mediumOf(field) ?? 'IMG']);
}

/** addMedia returns the value of a media field after one more file: in place of the old one, or after those of a list. */
export function addMedia(field: Leaf, value: Value, file: MediaValue): Value {
  if (!takesMany(field)) {
    return file;
  }
  const others = mediaOf(value).filter((one) => !sameValue(one, file));

  return [...others, file].slice(-(field.display.max_items ?? 12));
}
