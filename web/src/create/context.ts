import { createContext, useContext } from 'react';
import type { Run } from '../data/runs';
import type { MediaValue } from '../form/fields';
import type { Actions } from './actions';
import type { Result } from './results';

/** Overlay is what is open over the page. */
export type Overlay =
  | { kind: 'tools' }
  | { kind: 'code'; run?: Run }
  | { kind: 'viewer'; id: string }
  | { kind: 'details'; id: string }
  | { kind: 'compare'; ids: [string, string] }
  | { kind: 'pin'; result: Result }
  | { kind: 'input'; file: MediaValue };

/** CreatePage is what the parts of Create share: what is chosen, what can be done, what is open. */
export type CreatePage = Actions & {
  chosenId: string | undefined;
  choose: (id: string | undefined) => void;
  favourites: ReadonlySet<string>;
  setFavourite: (id: string, on: boolean) => void;
  /** The results that are marked for a comparison; undefined while none is being made. */
  marked: string[] | undefined;
  mark: (id: string) => void;
  open: (overlay: Overlay) => void;
  /** Puts a result into the form, or asks for the tool that shall work on it. */
  takeAsInput: (result: Result) => void;
};

export const CreatePageContext = createContext<CreatePage | undefined>(undefined);

/** useCreatePage returns what the parts of Create share. */
export function useCreatePage(): CreatePage {
  const page = useContext(CreatePageContext);
  if (!page) {
    throw new Error('useCreatePage is called outside of Create.');
  }
  return page;
}
