import { useLocation } from 'wouter';
import { signOut } from '../api/session';
import { useAccount } from '../data/account';
import { setPreferences, usePreferences } from '../data/preferences';
import { text } from '../text/app';
import { Menu, type MenuItem } from '../ui/Menu';
import styles from './AccountMenu.module.css';

/** initialsOf returns one or two letters for a name or an e-mail address. */
export function initialsOf(name: string): string {
  const words =
    name
      .split('@')[0]
      ?.split(/[\s._-]+/)
      .filter(Boolean) ?? [];
  const letters = words.length > 1 ? `${words[0]?.[0]}${words[1]?.[0]}` : (words[0]?.slice(0, 2) ?? '?');

  return letters.toUpperCase();
}

/** AccountMenu shows for whom the studio acts, and switches between accounts and looks. */
export function AccountMenu({ className }: { className?: string }) {
  const { me, account, chooseAccount, linkTo } = useAccount();
  const { theme } = usePreferences();
  const [, navigate] = useLocation();

  const items: MenuItem[] = [
    ...me.accounts.map((one) => ({
      label: one.label,
      icon: one.kind === 'TEAM' ? ('users' as const) : ('user' as const),
      checked: one.id === account.id,
      note: one.balance.tokens.toLocaleString(),
      onSelect: () => chooseAccount(one.id),
    })),
    'line',
    ...(['system', 'light', 'dark'] as const).map((value) => ({
      label: text.theme[value],
      icon: value === 'dark' ? ('moon' as const) : ('sun' as const),
      checked: theme === value,
      onSelect: () => setPreferences({ theme: value }),
    })),
    'line',
    { label: text.settings, icon: 'settings', onSelect: () => navigate(linkTo('/you')) },
    { label: text.documentation, icon: 'code', href: '/docs' },
    { label: text.signOut, icon: 'signout', onSelect: () => void signOut() },
  ];

  return (
    <div className={className}>
      <Menu label={text.accountOf(account.label)} items={items} className={styles.face}>
        <span
          className={styles.initials}
          data-initials={initialsOf(account.kind === 'TEAM' ? account.label : me.user.email)}
        />
      </Menu>
    </div>
  );
}
