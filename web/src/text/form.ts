// The words of forms that are made from a tool's fields.

import { formatNumber } from '../ui/format';

export const text = {
  needed: (label: string) => `${label} is needed.`,
  tooLong: (limit: number) => `Use at most ${formatNumber(limit)} characters.`,
  noNumber: 'Write a number.',
  noWhole: 'Write a whole number.',
  noPixels: 'Write both sides as whole numbers of pixels.',
  outOfRange: (min: number | undefined, max: number | undefined) => {
    if (min === undefined) {
      return `Use at most ${formatNumber(max ?? 0)}.`;
    }
    return max === undefined
      ? `Use at least ${formatNumber(min)}.`
      : `Use a number from ${formatNumber(min)} to ${formatNumber(max)}.`;
  },
  outOfPixels: (min: number | undefined, max: number | undefined) => {
    if (max === undefined) {
      return `Each side has at least ${formatNumber(min ?? 1)} pixels.`;
    }
    return `Each side has ${formatNumber(min ?? 1)} to ${formatNumber(max)} pixels.`;
  },
  noMultiple: (divisor: number) => `Each side is a multiple of ${formatNumber(divisor)} pixels.`,
  tooMany: (limit: number) => `Choose at most ${formatNumber(limit)}.`,
  random: 'random',
  none: 'none',
  on: 'on',
  off: 'off',
  size: (width: number, height: number) => `${width} × ${height}`,
  files: (count: number) => (count === 1 ? '1 file' : `${count} files`),
  summaryPart: (label: string, value: string) => `${label.toLowerCase()} ${value}`,
  andMore: (count: number) => `${count} more`,
  more: 'More',
  changed: (count: number) => `${count} changed`,
  resetAll: 'Back to the defaults',
  reset: (label: string) => `Set ${label} back to its default`,
  optional: 'optional',
  count: (used: number, limit: number) => `${formatNumber(used)} / ${formatNumber(limit)}`,
  noChoice: 'None',
  filterOptions: (label: string) => `Search in ${label}`,
  noOptions: 'Nothing matches. Try another word.',
  ownSize: 'Own',
  width: 'Width',
  height: 'Height',
  swapSides: 'Swap width and height',
  seedRandom: 'Random each time',
  newSeed: 'New seed',
  clearSeed: 'Random each time',
  drop: {
    IMG: 'Drop or paste a picture',
    VID: 'Drop or paste a video',
    AUDIO: 'Drop or paste a sound',
    ASSET_3D: 'Drop a 3D model',
    TEXT: 'Drop a text',
  },
  dropMany: 'Drop or paste pictures',
  chooseFile: 'Choose a file',
  chooseFiles: 'Choose files',
  fromLibrary: 'From the library',
  remove: (name: string) => `Remove ${name}`,
  moveEarlier: (name: string) => `Move ${name} earlier`,
  aFile: 'the file',
  uploading: (name: string, percent: number) => `${name}, ${percent} % sent`,
  stopUpload: (name: string) => `Stop sending ${name}`,
  wrongType: (name: string, types: string) => `${name} is of a type that this input does not take. It takes ${types}.`,
  uploadFailed: (name: string, reason: string) => `${name} was not stored: ${reason}`,
  noRoom: (label: string, limit: number) => `${label} takes at most ${limit} files; the rest was left out.`,
  anyType: { IMG: 'pictures', VID: 'videos', AUDIO: 'sounds', ASSET_3D: '3D models (GLB)', TEXT: 'texts' },
  lost: 'This file is no longer there. Remove it and choose another.',
  pickerTitle: 'Choose from the library',
  pickerResults: 'Results',
  pickerUploads: 'Uploads',
  pickerSearch: 'Search by prompt',
  pickerEmpty: 'Nothing here yet',
  pickerEmptyHint: 'Results that you make and files that you upload appear here.',
  pickerNoMatch: 'Nothing matches this search',
  pickerTake: (count: number) => (count === 1 ? 'Use 1 file' : `Use ${count} files`),
  pickerMore: 'Show more',
  unnamedResult: 'Result without a prompt',
  unnamedUpload: 'Upload without a name',
};
