import { useQueries } from '@tanstack/react-query';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { text } from '../text/library';
import { Button, ButtonLink } from '../ui/Button';
import { Empty } from '../ui/States';
import { useFamilies, type View } from './FilterBar';
import { activeFilters, dropFilter, type FilterName, type Filters, queryOf } from './filters';
import styles from './NothingFound.module.css';
import { nameFilter } from './nameFilter';
import { readMarks } from './useShelf';

type Props = {
  view: View;
  filters: Filters;
  onFilter: (change: Filters) => void;
  onUpload: () => void;
};

/** NothingFound says why the grid is empty: nothing was made yet, or which filter leaves everything out. */
export function NothingFound({ view, filters, onFilter, onUpload }: Props) {
  const { linkTo } = useAccount();
  const active = activeFilters(filters);

  if (view === 'uploads') {
    const upload = (
      <Button kind="main" icon="upload" onClick={onUpload}>
        {text.upload}
      </Button>
    );
    return (
      <Empty title={text.noUploadsTitle} actions={upload}>
        {text.noUploadsText}
      </Empty>
    );
  }
  if (active.length === 0) {
    const make = (
      <ButtonLink kind="main" icon="spark" href={linkTo('/')}>
        {text.makeFirst}
      </ButtonLink>
    );
    return (
      <Empty title={text.emptyTitle} actions={make}>
        {text.emptyText}
      </Empty>
    );
  }
  return <DroppedFilters active={active} filters={filters} onFilter={onFilter} />;
}

type DroppedProps = { active: FilterName[]; filters: Filters; onFilter: (change: Filters) => void };

/** DroppedFilters counts what there would be without each filter. */
function DroppedFilters({ active, filters, onFilter }: DroppedProps) {
  const { teamId } = useAccount();
  const tools = useTools(teamId);
  const families = useFamilies(teamId);
  const changes = active.map((name) => ({ name, change: dropFilter(name) }));
  const everything = Object.assign({}, ...changes.map(({ change }) => change)) as Filters;

  const counts = useQueries({
    queries: [...changes.map(({ change }) => change), everything].map((change) => ({
      queryKey: ['library-count', teamId, { ...filters, ...change }],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        readMarks(queryOf({ ...filters, ...change }, teamId, new Date()), 1000, signal),
      select: (marks: { total: number }) => marks.total,
    })),
  });

  const nameOf = (id: string) =>
    tools.data?.find((tool) => tool.id === id)?.name ?? families.data?.find((tag) => tag.id === id)?.label;
  const label = (name: FilterName, count: number | undefined) => {
    const filter = nameFilter(name, filters, nameOf);
    return count === undefined ? text.dropCounting(filter) : text.dropFilter(filter, count);
  };
  const all = counts.at(-1)?.data;
  const buttons = (
    <div className={styles.choices}>
      {changes.map(({ name, change }, place) => (
        <Button key={name} icon="close" disabled={counts[place]?.data === 0} onClick={() => onFilter(change)}>
          {label(name, counts[place]?.data)}
        </Button>
      ))}
      {active.length > 1 && all !== undefined && (
        <Button kind="main" onClick={() => onFilter(everything)}>
          {text.dropAll(all)}
        </Button>
      )}
    </div>
  );

  return (
    <Empty title={text.noneTitle} actions={buttons}>
      {text.noneText}
    </Empty>
  );
}
