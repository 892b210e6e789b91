import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { text } from '../text/library';
import { Chip } from '../ui/Chip';
import type { MenuItem } from '../ui/Menu';
import { Segments } from '../ui/Segments';
import { useSmallScreen } from '../ui/screen';
import { DaysDialog } from './DaysDialog';
import styles from './FilterBar.module.css';
import { FilterMenu } from './FilterMenu';
import { type Filters, mediums, shapes, sizes, spans } from './filters';
import { nameTime } from './nameFilter';
import { WordSearch } from './WordSearch';

export type View = 'results' | 'uploads';

type Props = {
  view: View;
  filters: Filters;
  onView: (view: View, filters: Filters) => void;
  onFilter: (change: Filters) => void;
};

/** useFamilies reads the families of models that tools are marked with. */
export function useFamilies(teamId: string | undefined) {
  return useQuery({
    queryKey: ['tool-tags', teamId],
    staleTime: 5 * 60_000,
    queryFn: async () => dataOf(await api.GET('/tool-tags', { params: { query: { team_id: teamId } } })).data,
    select: (tags) => tags.filter((tag) => tag.type === 'MODEL_FAMILY'),
  });
}

/** FilterBar chooses what the library shows. All of it is in the address. */
export function FilterBar({ view, filters, onView, onFilter }: Props) {
  const { teamId, account, me, chooseAccount } = useAccount();
  const tools = useTools(teamId);
  const families = useFamilies(teamId);
  const [days, setDays] = useState(false);
  const small = useSmallScreen();
  const personal = me.accounts[0]?.id;

  const kinds = ['ALL', ...mediums, 'UPLOADS'] as const;
  const kind = view === 'uploads' ? 'UPLOADS' : (filters.type ?? 'ALL');
  const chooseKind = (value: (typeof kinds)[number]) => {
    if (value === 'UPLOADS') {
      onView('uploads', { type: undefined });
    } else {
      onView('results', { type: value === 'ALL' ? undefined : value });
    }
  };

  const choices = <T extends string>(
    any: string,
    chosen: T | undefined,
    options: Array<{ value: T; label: string }>,
    choose: (value: T | undefined) => void,
  ): MenuItem[] => [
    { label: any, checked: chosen === undefined, onSelect: () => choose(undefined) },
    'line',
    ...options.map((option) => ({
      label: option.label,
      checked: option.value === chosen,
      onSelect: () => choose(option.value),
    })),
  ];
  const named = (list: Array<{ id: string; name: string }>) => list.map(({ id, name }) => ({ value: id, label: name }));
  const toolNames = named(tools.data ?? []).sort((one, other) => one.label.localeCompare(other.label));
  const familyNames = named((families.data ?? []).map((tag) => ({ id: tag.id, name: tag.label })));
  const nameIn = (list: Array<{ value: string; label: string }>, id: string | undefined) =>
    list.find((one) => one.value === id)?.label;

  const times: MenuItem[] = [
    ...choices(
      text.anyTime,
      filters.from || filters.until ? 'today' : filters.span,
      spans.map((span) => ({ value: span, label: text.spans[span] })),
      (span) => onFilter({ span, from: undefined, until: undefined }),
    ).map((item) => (item !== 'line' && (filters.from || filters.until) ? { ...item, checked: false } : item)),
    'line',
    { label: text.otherDays, icon: 'calendar', onSelect: () => setDays(true) },
  ];

  return (
    <div className={styles.bar}>
      <div className={styles.line}>
        <Segments
          label={text.kind}
          value={kind}
          options={kinds.map((value) => ({ value, label: text.kinds[value] }))}
          onChange={chooseKind}
        />
        {account.kind === 'TEAM' && personal && (
          <Chip
            icon="users"
            on
            removable
            aria-label={text.leaveTeam(account.label)}
            onClick={() => chooseAccount(personal)}
          >
            {account.label}
          </Chip>
        )}
      </div>
      {view === 'results' && (
        <div className={styles.line}>
          {small && <WordSearch words={filters.words} onWords={(words) => onFilter({ words })} />}
          <Chip
            icon="heart"
            on={filters.favorites === true}
            onClick={() => onFilter({ favorites: filters.favorites ? undefined : true })}
          >
            {text.favorites}
          </Chip>
          <FilterMenu
            label={text.tool}
            icon="shapes"
            chosen={filters.tool && (nameIn(toolNames, filters.tool) ?? text.fallbackFilter.tool)}
            items={choices(text.anyTool, filters.tool, toolNames, (tool) => onFilter({ tool }))}
          />
          <FilterMenu
            label={text.shape}
            icon="ratio"
            chosen={filters.shape && text.shapes[filters.shape]}
            items={choices(
              text.anyShape,
              filters.shape,
              shapes.map((shape) => ({ value: shape, label: text.shapes[shape] })),
              (shape) => onFilter({ shape }),
            )}
          />
          <FilterMenu
            label={text.size}
            icon="expand"
            chosen={filters.size && text.sizes[filters.size]}
            items={choices(
              text.anySize,
              filters.size,
              sizes.map((size) => ({ value: size, label: text.sizes[size] })),
              (size) => onFilter({ size }),
            )}
          />
          <FilterMenu label={text.time} empty={text.anyTime} icon="calendar" chosen={nameTime(filters)} items={times} />
          {familyNames.length > 0 && (
            <FilterMenu
              label={text.family}
              icon="layers"
              chosen={filters.family && (nameIn(familyNames, filters.family) ?? text.fallbackFilter.family)}
              items={choices(text.anyFamily, filters.family, familyNames, (family) => onFilter({ family }))}
            />
          )}
        </div>
      )}
      {days && (
        <DaysDialog
          from={filters.from}
          until={filters.until}
          onClose={() => setDays(false)}
          onChoose={(from, until) => onFilter({ from, until, span: undefined })}
        />
      )}
    </div>
  );
}
