import type { RefObject } from 'react';
import { text } from '../text/library';
import { Button, IconButton } from '../ui/Button';
import { Menu } from '../ui/Menu';
import { PageHead } from '../ui/PageHead';
import { useSmallScreen } from '../ui/screen';
import type { Filters } from './filters';
import { WordSearch } from './WordSearch';

type Props = {
  count: string | undefined;
  /** Undefined for uploads, which have no search and no order. */
  filters: Filters | undefined;
  onFilter: (change: Filters) => void;
  selecting: boolean;
  onSelecting: (selecting: boolean) => void;
  dense: boolean;
  onDense: (dense: boolean) => void;
  fileInput: RefObject<HTMLInputElement | null>;
  onFiles: (files: Iterable<File>) => void;
};

const acceptedFiles = 'image/*,video/mp4,video/webm,video/quicktime,audio/*,.glb,.heic,.heif';

/** LibraryHead is the head of the library: how much there is, the search, and how the tiles are shown. */
export function LibraryHead(props: Props) {
  const { count, filters, onFilter, selecting, onSelecting, dense, onDense, fileInput, onFiles } = props;
  const small = useSmallScreen();

  return (
    <PageHead title={text.title} note={<span className="hide-small">{count}</span>}>
      <span className="grow" />
      {filters && !small && <WordSearch words={filters.words} onWords={(words) => onFilter({ words })} />}
      {filters && (
        <Menu
          label={text.order}
          icon="filter"
          on={filters.oldest}
          items={[
            { label: text.newest, checked: !filters.oldest, onSelect: () => onFilter({ oldest: undefined }) },
            { label: text.oldest, checked: filters.oldest === true, onSelect: () => onFilter({ oldest: true }) },
          ]}
        />
      )}
      <Button
        kind="bare"
        icon="check"
        on={selecting}
        aria-label={selecting ? text.stopSelecting : text.select}
        onClick={() => onSelecting(!selecting)}
      >
        <span className="hide-small">{selecting ? text.stopSelecting : text.select}</span>
      </Button>
      <IconButton icon="grid" label={dense ? text.largerTiles : text.smallerTiles} onClick={() => onDense(!dense)} />
      <Button kind="main" icon="upload" aria-label={text.upload} onClick={() => fileInput.current?.click()}>
        <span className="hide-small">{text.upload}</span>
      </Button>
      <input
        ref={fileInput}
        type="file"
        multiple
        hidden
        accept={acceptedFiles}
        aria-label={text.upload}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
    </PageHead>
  );
}
