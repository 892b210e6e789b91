import { useInfiniteQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/form';
import { Button } from '../ui/Button';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/Dialog';
import { SearchInput } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { Picture } from '../ui/Picture';
import { Segments } from '../ui/Segments';
import { Bone, Empty, Waiting } from '../ui/States';
import type { Medium } from './fields';
import styles from './Media.module.css';
import { mediumIcons } from './MediaThumb';

type Source = 'results' | 'uploads';

/** PickedFile is a result or an upload that was chosen. */
export type PickedFile = {
  kind: 'LIBRARY_REF' | 'UPLOAD_REF';
  id: string;
  item: Schemas['LibraryItem'] | Schemas['Upload'];
};

type Props = {
  /** The only kind of file that can be chosen; all kinds if there is none. */
  type?: Medium;
  title?: string;
  /** What the button that takes the chosen files says. */
  takeLabel?: (count: number) => string;
  /** Without it the first file that is pressed is taken. */
  many?: boolean;
  limit?: number;
  onTake: (files: PickedFile[]) => void;
  onClose: () => void;
};

type Entry = PickedFile & { label: string };

const resultEntry = (item: Schemas['LibraryItem']): Entry => ({
  kind: 'LIBRARY_REF',
  id: item.id,
  item,
  label: item.prompt || text.unnamedResult,
});

const uploadEntry = (item: Schemas['Upload']): Entry => ({
  kind: 'UPLOAD_REF',
  id: item.id,
  item,
  label: item.name || text.unnamedUpload,
});

type EntryPage = { entries: Entry[]; next: string | undefined };

/** useEntries reads results or uploads of the account, a page at a time. */
function useEntries(source: Source, type: Medium | undefined, search: string) {
  const { teamId } = useAccount();

  return useInfiniteQuery({
    queryKey: ['picker', source, type, search, teamId],
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: EntryPage) => page.next,
    queryFn: async ({ pageParam, signal }): Promise<EntryPage> => {
      const query = { type, team_id: teamId, limit: 48, cursor: pageParam };
      if (source === 'uploads') {
        const page = dataOf(await api.GET('/uploads', { params: { query }, signal }));
        return { entries: page.data.map(uploadEntry), next: page.next_cursor ?? undefined };
      }
      const found = { ...query, q: search || undefined };
      const page = dataOf(await api.GET('/library', { params: { query: found }, signal }));
      return { entries: page.data.map(resultEntry), next: page.next_cursor ?? undefined };
    },
  });
}

/** MediaPicker is a dialog in which results and uploads are chosen for a media field or a board. */
export default function MediaPicker({
  type,
  title = text.pickerTitle,
  takeLabel = text.pickerTake,
  many,
  limit = Number.POSITIVE_INFINITY,
  onTake,
  onClose,
}: Props) {
  const [source, setSource] = useState<Source>('results');
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<Entry[]>([]);
  const entries = useEntries(source, type, useDeferredValue(search.trim()));
  const list = entries.data?.pages.flatMap((page) => page.entries) ?? [];

  const isOn = (entry: Entry) => chosen.some((one) => one.kind === entry.kind && one.id === entry.id);
  const choose = (entry: Entry) => {
    if (!many) {
      onTake([entry]);
      return;
    }
    setChosen((before) => {
      const others = before.filter((one) => one.id !== entry.id);
      const added = others.length === before.length && before.length < limit;
      return added ? [...before, entry] : others;
    });
  };
  const actions = many && (
    <Button kind="main" disabled={chosen.length === 0} onClick={() => onTake(chosen)}>
      {takeLabel(chosen.length)}
    </Button>
  );

  return (
    <Dialog open onClose={onClose} title={title} kind="wide" actions={actions}>
      <div className={styles.pickerHead}>
        <Segments
          label={title}
          value={source}
          options={[
            { value: 'results', label: text.pickerResults },
            { value: 'uploads', label: text.pickerUploads },
          ]}
          onChange={setSource}
        />
        {source === 'results' && (
          <SearchInput
            label={text.pickerSearch}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            className="grow"
          />
        )}
      </div>
      {entries.isError && <ErrorFault error={entries.error} onRetry={() => void entries.refetch()} />}
      {entries.isPending && (
        <Waiting>
          <div className={styles.picker}>
            {Array.from({ length: 12 }, (_, at) => (
              <Bone key={at} ratio={1} />
            ))}
          </div>
        </Waiting>
      )}
      {entries.isSuccess && list.length === 0 && (
        <Empty title={search ? text.pickerNoMatch : text.pickerEmpty}>{text.pickerEmptyHint}</Empty>
      )}
      <div className={styles.picker}>
        {list.map((entry) => (
          <button
            key={`${entry.kind} ${entry.id}`}
            type="button"
            className={classes(styles.tile, isOn(entry) && styles.chosen)}
            aria-pressed={many ? isOn(entry) : undefined}
            aria-label={entry.label}
            title={entry.label}
            onClick={() => choose(entry)}
          >
            <EntryPicture entry={entry} />
            {isOn(entry) && (
              <span className={styles.mark}>
                <Icon name="check" small />
              </span>
            )}
          </button>
        ))}
      </div>
      {entries.hasNextPage && (
        <p className={styles.pickerMore}>
          <Button disabled={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
            {text.pickerMore}
          </Button>
        </p>
      )}
    </Dialog>
  );
}

/** EntryPicture shows what a file looks like; one without a picture has an icon and its name. */
function EntryPicture({ entry }: { entry: Entry }) {
  const { type, thumb_url, preview_url, blurhash } = entry.item;
  const address = thumb_url ?? preview_url;

  if (address) {
    return <Picture src={address} alt="" ratio={1} blurhash={blurhash} draggable={false} />;
  }
  return (
    <span className={styles.kind}>
      <Icon name={mediumIcons[type]} />
      <span className="small cut">{entry.label}</span>
    </span>
  );
}
