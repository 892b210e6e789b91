import { type ReactNode, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { usePreferences } from '../data/preferences';
import { text } from '../text/app';
import { classes } from '../ui/classes';
import { formatNumber } from '../ui/format';
import { Icon } from '../ui/Icon';
import type { IconName } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { AccountMenu } from './AccountMenu';
import { ConnectionStrip } from './ConnectionStrip';
import { KeySheet } from './KeySheet';
import { Palette } from './Palette';
import styles from './Shell.module.css';

type Page = { path: string; under: string; label: string; icon: IconName; shown: boolean; foot: boolean };

/** usePages lists the pages that this person can open. */
function usePages(): Page[] {
  const { me } = useAccount();
  const companies = Object.values(me.company_permissions);
  const teams = me.accounts.filter((account) => account.kind === 'TEAM');
  const reports = companies.some((permissions) => permissions.VIEW_COMPANY_REPORTS);

  return [
    { path: '/', under: '/create', label: text.create, icon: 'spark', shown: true, foot: true },
    { path: '/library', under: '/library', label: text.library, icon: 'grid', shown: true, foot: true },
    { path: '/boards', under: '/boards', label: text.boards, icon: 'board', shown: true, foot: true },
    { path: '/flows', under: '/flows', label: text.flows, icon: 'flow', shown: true, foot: true },
    { path: '/reports', under: '/reports', label: text.reports, icon: 'chart', shown: reports, foot: true },
    {
      path: '/people',
      under: '/people',
      label: text.people,
      icon: 'users',
      shown: companies.length > 0 || teams.length > 0,
      foot: false,
    },
    {
      path: '/operator',
      under: '/operator',
      label: text.operator,
      icon: 'gauge',
      shown: 'operator' in me && me.operator === true,
      foot: false,
    },
  ];
}

/** Shell is the frame of every page: the rail with pages, balance and account, and what opens over all pages. */
export function Shell({ children }: { children: ReactNode }) {
  const [location, navigate] = useLocation();
  const { account, linkTo } = useAccount();
  const { letterKeys } = usePreferences();
  const pages = usePages().filter((page) => page.shown);
  const [palette, setPalette] = useState(false);
  const [keys, setKeys] = useState(false);

  const go = (path: string) => () => navigate(linkTo(path));
  useKeys(
    {
      'Ctrl+k': () => setPalette(true),
      '?': () => setKeys(true),
      'g c': go('/'),
      'g l': go('/library'),
      'g b': go('/boards'),
      'g f': go('/flows'),
      'g r': go('/reports'),
      'g y': go('/you'),
      z: () => document.querySelector<HTMLButtonElement>('[data-toast-key=Z]')?.click(),
    },
    { letters: letterKeys },
  );

  const isCurrent = (page: Page) =>
    page.path === '/' ? location === '/' || /^\/(create|welcome)\b/.test(location) : location.startsWith(page.under);

  return (
    <div className={styles.app}>
      <a href="#page" className={styles.skip}>
        {text.skip}
      </a>
      <nav className={styles.rail} aria-label={text.mainMenu}>
        <Link href={linkTo('/')} className={styles.mark} aria-label="Atelier">
          A
        </Link>
        {pages.map((page) => (
          <Link
            key={page.path}
            href={linkTo(page.path)}
            className={classes(styles.nav, !page.foot && styles.railOnly)}
            aria-current={isCurrent(page) ? 'page' : undefined}
          >
            <Icon name={page.icon} />
            <span>{page.label}</span>
          </Link>
        ))}
        <Link
          href={linkTo('/you')}
          className={classes(styles.nav, styles.footOnly)}
          aria-current={location.startsWith('/you') ? 'page' : undefined}
        >
          <Icon name="user" />
          <span>{text.you}</span>
        </Link>
        <span className={styles.gap} />
        <Link href={linkTo('/you')} className={styles.balance} aria-label={text.balanceOf(account.balance.tokens)}>
          <b>{formatNumber(account.balance.tokens)}</b> {text.tokens(account.balance.tokens)}
        </Link>
        <button type="button" className={classes(styles.nav, styles.railOnly)} onClick={() => setKeys(true)}>
          <Icon name="keyboard" />
          <span>{text.keys}</span>
        </button>
        <AccountMenu className={styles.who} />
      </nav>
      <div className={styles.page}>
        <ConnectionStrip />
        <main id="page" tabIndex={-1} className={styles.main}>
          {children}
        </main>
      </div>
      <Palette open={palette} onClose={() => setPalette(false)} pages={pages} />
      <KeySheet open={keys} onClose={() => setKeys(false)} />
    </div>
  );
}
