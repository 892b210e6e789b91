// The words of the viewer, which several pages open.

export const text = {
  title: (label: string) => `${label}, large`,
  previous: 'Previous',
  next: 'Next',
  close: 'Close',
  actualSize: 'Show at full size',
  fitWindow: 'Fit into the window',
  place: (at: number, count: number) => `${at} of ${count}`,
  gone: 'This file was deleted.',
  model: 'Download the file to see it in a 3D program.',
  textFailed: 'The text could not be loaded. Close this view and open it again.',
};
