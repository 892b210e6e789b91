import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { readResultId } from '../data/links';
import PinDialog from '../data/PinDialog';
import { useSearchValues } from '../data/search';
import { text } from '../text/library';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/Dialog';
import { Icon } from '../ui/Icon';
import { useSmallScreen } from '../ui/screen';
import { FilterBar, type View } from './FilterBar';
import { type Filters, readFilters, writeFilters } from './filters';
import { Grid, type GridHandle } from './Grid';
import { Inspector, InspectorHint } from './Inspector';
import type { Item } from './items';
import { LargeViewer } from './LargeViewer';
import styles from './Library.module.css';
import { LibraryHead } from './LibraryHead';
import { NothingFound } from './NothingFound';
import { SelectionBar } from './SelectionBar';
import { SendingList } from './SendingList';
import { Selection } from './selection';
import { useActiveItem } from './useActiveItem';
import { useItemActions } from './useItemActions';
import { useLibraryKeys } from './useLibraryKeys';
import { useRefreshAfterRuns } from './useRefreshAfterRuns';
import { useSelect } from './useSelect';
import { listName, useResults, useUploads } from './useShelf';
import { useStored } from './useStored';
import { useUploading } from './useUploading';
import { WaitingTiles } from './WaitingTiles';

/** Library shows everything that the account has made and uploaded. */
export default function Library({ openId: encodedId }: { openId?: string }) {
  const openId = encodedId === undefined ? undefined : readResultId(encodedId);
  const { teamId } = useAccount();
  const [search, setSearch] = useSearchValues();
  const small = useSmallScreen();
  const grid = useRef<GridHandle>(null);
  const fileInput = useRef<HTMLInputElement>(null);

  const view: View = search.get('view') === 'uploads' ? 'uploads' : 'results';
  const filters = useMemo(() => readFilters(search), [search]);
  const list = listName(search, teamId);
  const results = useResults(search, teamId, view === 'results');
  const uploads = useUploads(search, teamId, view === 'uploads');
  const query = view === 'results' ? results : uploads;
  const shelf = query.data;
  // Draws the page anew when something of the list changes, such as a favourite.
  useSyncExternalStore(shelf?.subscribe ?? noSubscription, () => shelf?.version() ?? 0);
  const total = shelf?.total ?? 0;

  const [selection] = useState(() => new Selection());
  const selected = useSyncExternalStore(selection.subscribe, selection.list);
  const [selecting, setSelecting] = useState(false);
  const [dense, setDense] = useStored('atelier-library-dense', false);
  const [panel, setPanel] = useStored('atelier-library-panel', true);
  const [large, setLarge] = useState(false);
  const [pinning, setPinning] = useState<Item[]>();
  const itemActions = useItemActions(shelf, selection);
  const { active, shownId, move, open } = useActiveItem(shelf, openId, view === 'results', grid);
  const activeItem = active < 0 ? undefined : shelf?.itemAt(active);

  // Details of an item that is deleted go on with the item that takes its place.
  const actions = {
    ...itemActions,
    remove: (items: Item[]) => {
      itemActions.remove(items);
      const next = shelf?.itemAt(Math.min(active, shelf.total - 1));
      if (items.some((item) => item.id === openId)) {
        open(next?.id, true);
      }
    },
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: another list starts without a selection.
  useEffect(() => selection.clear(), [list, selection]);

  useRefreshAfterRuns(results.refetch, view === 'results');

  const uploading = useUploading({
    shelf,
    shown: view === 'uploads',
    onShow: () => setSearch({ view: 'uploads' }, false),
  });

  const setFilters = (change: Filters) => setSearch(writeFilters(change));
  const setView = (next: View, change: Filters) =>
    setSearch({ ...writeFilters(change), view: next === 'uploads' ? 'uploads' : undefined }, next === view);

  const openAt = (index: number) => {
    const item = shelf?.itemAt(index);
    if (item) {
      move(index);
      setPanel(true);
      open(item.id, openId !== undefined);
    }
  };

  const moveTo = async (index: number) => {
    if (!shelf || index < 0 || index >= total) {
      return;
    }
    await shelf.read(index, index + 1).catch(() => undefined);
    grid.current?.show(index);
    move(index);
  };

  const select = useSelect(shelf, selection, move);

  const close = useCallback(() => {
    open(undefined, false);
    grid.current?.focus();
  }, [open]);

  const closeLarge = useCallback(() => setLarge(false), []);

  // A dialog that closes leaves the focus on the grid, where the keys go on.
  const wasLarge = useRef(false);
  useEffect(() => {
    if (wasLarge.current && !large) {
      grid.current?.focus();
    }
    wasLarge.current = large;
  }, [large]);

  useLibraryKeys({
    items: selected.length > 0 ? selected : activeItem ? [activeItem] : [],
    actions,
    enabled: !large && !pinning,
    onSelect: (range) => active >= 0 && void select(active, range),
    onPin: setPinning,
    onEscape: () => {
      if (selected.length > 0 || selecting) {
        selection.clear();
        setSelecting(false);
      } else if (openId !== undefined) {
        close();
      }
    },
  });

  const showPanel = !small && (panel || openId !== undefined);
  const inspector = shownId !== undefined && (
    <Inspector
      key={small ? 'small' : 'wide'}
      id={shownId}
      kind={view === 'uploads' ? 'UPLOAD_REF' : 'LIBRARY_REF'}
      known={shelf?.itemAt(shelf.find(shownId))}
      actions={actions}
      onPin={setPinning}
      onLarge={() => setLarge(true)}
      onClose={() => {
        setPanel(false);
        close();
      }}
      onStep={active >= 0 ? (step) => void moveTo(active + step) : undefined}
    />
  );

  const count =
    view === 'uploads' ? shelf && text.uploads(total, shelf.complete) : shelf?.complete && text.results(total);
  return (
    <div className={classes(styles.library, showPanel && styles.withPanel)}>
      <div className={styles.head}>
        <LibraryHead
          count={count || undefined}
          filters={view === 'results' ? filters : undefined}
          onFilter={setFilters}
          selecting={selecting}
          onSelecting={setSelecting}
          dense={dense}
          onDense={setDense}
          fileInput={fileInput}
          onFiles={uploading.send}
        />
        <FilterBar view={view} filters={filters} onView={setView} onFilter={setFilters} />
      </div>
      <div className={styles.hold}>
        {query.isError && !shelf && (
          <div className={styles.middle}>
            <ErrorFault error={query.error} onRetry={() => void query.refetch()} />
          </div>
        )}
        {!shelf && query.isPending && <WaitingTiles />}
        {shelf && total === 0 && (
          <div className={styles.middle}>
            <NothingFound
              view={view}
              filters={filters}
              onFilter={setFilters}
              onUpload={() => fileInput.current?.click()}
            />
          </div>
        )}
        {shelf && total > 0 && (
          <Grid
            ref={grid}
            label={view === 'uploads' ? text.uploadGrid : text.grid}
            shelf={shelf}
            selection={selection}
            list={list}
            busy={query.isFetching}
            active={active}
            open={openId !== undefined}
            selecting={selecting || selected.length > 0}
            dense={dense}
            onMove={(index) => void moveTo(index)}
            onOpen={openAt}
            onLarge={(index) => {
              move(index);
              setLarge(true);
            }}
            onSelect={(index, range) => void select(index, range)}
          />
        )}
        {shelf?.error !== undefined && (
          <div className={styles.fault}>
            <ErrorFault error={shelf.error} onRetry={() => shelf.retry()} />
          </div>
        )}
        <SelectionBar selection={selection} actions={actions} onPin={setPinning} />
        <SendingList list={uploading.list} onStop={uploading.stop} onAgain={uploading.again} />
      </div>
      {showPanel && (
        <aside className={styles.panel} aria-label={text.details}>
          {inspector || <InspectorHint />}
        </aside>
      )}
      {small && inspector && (
        <Dialog open onClose={close} title={text.details} kind="full" bare>
          {inspector}
        </Dialog>
      )}
      {large && shelf && activeItem && (
        <LargeViewer
          shelf={shelf}
          active={active}
          actions={actions}
          onMove={(index) => void moveTo(index)}
          onClose={closeLarge}
        />
      )}
      {pinning && <PinDialog items={pinning} onClose={() => setPinning(undefined)} />}
      {uploading.dropping && (
        <div className={styles.drop}>
          <Icon name="upload" />
          {text.dropHere}
        </div>
      )}
    </div>
  );
}

const noSubscription = () => () => {};
