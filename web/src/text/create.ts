// The words of Create and of the first run.

import { formatNumber, formatSeconds } from '../ui/format';

const tokens = (count: number) => (count === 1 ? '1 token' : `${formatNumber(count)} tokens`);
const ordinals = ['', '', 'Second', 'Third', 'Fourth', 'Fifth', 'Sixth', 'Seventh', 'Eighth', 'Ninth', 'Tenth'];

const span = (seconds: number) => {
  if (seconds < 90) {
    return `${Math.max(1, Math.round(seconds))} s`;
  }
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
};

const kinds = { IMG: 'picture', VID: 'video', AUDIO: 'sound', ASSET_3D: '3D model', TEXT: 'text' };

export const text = {
  title: 'Create',
  toolForm: 'Tool and inputs',
  feed: 'Runs',
  tokens,
  span,

  // Tools.
  chooseTool: (name: string) => `Tool: ${name}. Choose another`,
  toolLabel: 'Tool:',
  pickerTitle: 'Choose a tool',
  pickerSearch: 'Search tools',
  pickerKits: 'Collections',
  pickerAll: 'All',
  pickerTags: 'Tags',
  pickerEmpty: 'No tool matches',
  pickerEmptyHint: 'Try another word, or drop a tag.',
  pickerClear: 'Show all tools',
  noTools: 'No tools yet',
  noToolsHint: 'This account may use no tool. An admin of the team can allow tools, and the operator can add them.',
  toolPrice: (count: number) => (count === 0 ? 'free' : `${tokens(count)} each`),
  toolGone: 'This tool is not there',
  toolGoneHint: 'It was removed, or this account may not use it. Choose another one.',

  // The form of a tool.
  create: 'Create',
  createFor: (count: number) => (count === 0 ? 'Create, free' : `Create, ${tokens(count)}`),
  creating: 'Starting…',
  howMany: 'Number of results',
  price: tokens,
  free: 'Free',
  freePart: (count: number) => `${tokens(count)} of it from the free allowance`,
  about: (seconds: number) => `about ${span(seconds)}`,
  left: (count: number) => `${formatNumber(count)} left after it`,
  pricing: 'Working out the price…',
  waitForFiles: 'Files are being sent. Create waits for them.',
  tryIn: (seconds: number) => `Try again in ${seconds} s`,
  makeFewer: (count: number) => `Make ${count}`,
  useOwnAccount: 'Use your own account',
  fixInputs: 'Correct the marked inputs first.',
  offlineTitle: 'There is no connection to the service.',
  offlineHint: 'Your inputs are kept. Press Create again when the connection is back; a run is never started twice.',
  alreadyStarted: 'This run had already started; it was not started twice.',
  changedTool: (name: string) => `${name} was changed by its operator.`,
  carriedOver: 'Your inputs were carried over. Look at the form, then create again.',
  notCarried: (names: string) => `Your other inputs were carried over. These no longer fit: ${names}.`,
  lookAtForm: 'Look at the form',
  allInputs: 'All inputs',
  inputsTitle: (tool: string) => `${tool}: all inputs`,
  done: 'Done',
  results: (count: number, type: keyof typeof kinds) => (count === 1 ? `1 ${kinds[type]}` : `${count} ${kinds[type]}s`),
  startOver: 'Start over',
  startedOver: 'The form has its defaults again.',
  undo: 'Undo',

  // The feed.
  show: 'Show',
  all: 'All',
  runningFilter: (count: number) => (count > 0 ? `Running ${count}` : 'Running'),
  failedFilter: (count: number) => (count > 0 ? `Failed ${count}` : 'Failed'),
  noneRunning: 'Nothing is running',
  noneRunningHint: 'Runs appear here from the moment you press Create until they end.',
  noneFailed: 'No run has failed',
  noneFailedHint: 'Runs that could not finish would be listed here with the reason.',
  showAll: 'Show all runs',
  moreRuns: 'Show older runs',
  endOfRuns: 'This is the first run of this account.',
  compare: 'Compare',
  comparePick: (count: number) => `Compare: choose ${count === 0 ? 'two results' : 'one more'}`,
  compareStop: 'Stop comparing',
  compareHint: 'Choose two results to compare.',
  code: 'As code',
  codeOfRun: 'Copy as code',
  cancel: 'Cancel',
  cancelling: 'Stopping…',
  cancelled: 'Cancelled. It cost nothing.',
  newSeed: 'New seed',
  newSeedHint: 'Same inputs, new seed',
  runAgain: 'Run again',
  useInputs: 'Use inputs',
  usedInputs: (tool: string) => `The inputs are in the form of ${tool}.`,
  usedSome: (names: string) => `The inputs are in the form, without ${names}, which no longer fit.`,
  editAndRetry: 'Edit and retry',
  runGone: 'The run of this link is not there, or belongs to another account.',
  fileGone: 'The file of this link is not there, or belongs to another account.',
  more: 'More',
  moreOf: (name: string) => `More for ${name}`,
  started: (name: string) => `${name} started.`,
  unnamed: (tool: string | null) => tool ?? 'Run of a tool that is gone',
  cost: (count: number) => (count === 0 ? 'cost nothing' : tokens(count)),
  held: (count: number) => `${tokens(count)} held`,
  seed: (seed: number) => `seed ${seed}`,
  running: 'running',
  runningPart: (percent: number) => `running, ${percent} %`,
  aboutLeft: (seconds: number) => `about ${span(seconds)} left`,
  finishing: 'almost done',
  queuePlace: (place: number | null) => {
    if (place === null) {
      return 'In the queue';
    }
    if (place <= 1) {
      return 'Next in the queue';
    }
    return `${ordinals[place] ?? `Number ${formatNumber(place)}`} in the queue`;
  },
  queueHint: (seconds: number | null) =>
    seconds === null
      ? 'You can leave this page; the run goes on.'
      : `Takes about ${span(seconds)} once it starts. You can leave this page.`,
  progressOf: (name: string) => `Progress of ${name}`,
  failed: 'The run failed. It cost nothing.',
  whatToDo: (code: string, retryable: boolean) => {
    switch (code) {
      case 'TIMED_OUT':
        return 'Ask for less, such as a smaller size or fewer seconds, then run it again.';
      case 'CONTENT_POLICY_VIOLATION':
        return 'Change the prompt or the files, then run it again.';
      case 'STORAGE_QUOTA_EXCEEDED':
        return 'Delete results that you no longer need, then run it again.';
      case 'OUTPUT_INVALID':
        return 'Try other inputs. If it happens again, tell the operator.';
      default:
        return retryable
          ? 'Run it again in a moment. If it happens again, tell the operator.'
          : 'Change the inputs, then run it again.';
    }
  },
  costNothing: 'It cost nothing.',
  deletedResults: (count: number) => (count === 1 ? '1 result was deleted.' : `${count} results were deleted.`),
  fewer: (made: number, asked: number) => `The tool made ${made} of ${asked}.`,

  // Results.
  result: (name: string, at: number, count: number) => (count === 1 ? name : `${name}, ${at} of ${count}`),
  withLength: (name: string, seconds: number | null) =>
    seconds === null ? name : `${name}, ${formatSeconds(seconds)}`,
  favourite: 'Favourite',
  useAsInput: 'Use as input',
  download: 'Download',
  pin: 'Pin to a board',
  showLarge: 'Show large',
  details: 'Details',
  detailsTitle: 'Result',
  delete: 'Delete',
  deleted: 'The result was deleted.',
  restored: 'The result is back.',
  chosen: 'Chosen result',
  nothingChosen: 'No result is chosen',
  nothingChosenHint: 'Choose a result to see it here with its facts and its code.',
  place: (at: number, count: number) => `${at} of ${count}`,
  previous: 'Previous',
  next: 'Next',
  facts: {
    tool: 'Tool',
    size: 'Size',
    length: 'Length',
    seed: 'Seed',
    made: 'Made',
    paidBy: 'Paid by',
    took: 'Took',
    note: 'Note',
  },
  sizeFact: (width: number, height: number, bytes: string) => `${width} × ${height} · ${bytes}`,
  inputField: (label: string) => `Put into ${label}`,
  usedAsInput: (label: string) => `It is in “${label}” now.`,
  useAsInputTitle: 'Use as input',
  useAsInputNone: 'No tool takes this kind of file',
  useAsInputHint: 'Choose the tool that shall work on it.',

  // Compare.
  compareTitle: 'Compare',
  sideBySide: 'Side by side',
  wipe: 'Wipe',
  wipeAt: 'Position of the border',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  zoomFit: 'Fit',
  swap: 'Swap',

  // Code.
  codeTitle: 'Copy as code',
  codeHint: 'Set ATELIER_TOKEN to an access token of yours first.',
  makeToken: 'Access tokens',
  languages: { curl: 'curl', go: 'Go', python: 'Python', javascript: 'JavaScript', shell: 'Command line' },
  codeFor: (language: string) => `The run in ${language}`,
  goHint: 'Uses the package client of the Atelier repository; its README says how to import it.',
  shellHint: 'The atelier program is the one that serves; it also runs tools.',
  filesHint: 'Files are named by their ids in this account.',

  // First run.
  welcomeTitle: 'Welcome. What shall we make?',
  welcomeLead: (count: number) =>
    `Pick one to see it made, or write your own. You have ${formatNumber(count)} ${count === 1 ? 'token' : 'tokens'}.`,
  welcomeBroke:
    'Pick a tool and write a prompt. This account has no tokens yet; ask the operator of this installation for some.',
  firstTitle: 'Nothing made yet',
  tryOf: (tool: string, price: number) => `${tool} · ${price === 0 ? 'free' : tokens(price)}`,
  trying: 'Starting…',
  tryLabel: 'Try',
  prompts: {
    IMG: ['red fox in the snow', 'owl at night', 'sailboat on the sea'],
    VID: ['waves on a beach at sunset', 'clouds over a mountain'],
    AUDIO: ['Good morning, and welcome aboard.', 'The kettle is on, and the day can begin.'],
    ASSET_3D: ['a wooden chair', 'a small teapot'],
    TEXT: ['three names for a boat', 'a haiku about rain'],
  } as Record<keyof typeof kinds, string[]>,
};
