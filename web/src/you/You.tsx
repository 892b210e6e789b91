import { useLocation } from 'wouter';
import { signOut } from '../api/session';
import { useAccount } from '../data/account';
import { type PagePart, PartPage } from '../data/PartPage';
import { text } from '../text/you';
import { Menu, type MenuItem } from '../ui/Menu';
import { About } from './About';
import { AccessTokens } from './AccessTokens';
import { Balance } from './Balance';
import { Devices } from './Devices';
import { Invitations, useInvitations } from './Invitations';
import { Look } from './Look';
import { Webhooks } from './Webhooks';
import { YourData } from './YourData';

/** You shows what belongs to the person: balance, devices, tokens, webhooks, invitations, data, and how the studio looks. */
export default function You({ part }: { part: string }) {
  const { account } = useAccount();
  const invitations = useInvitations();
  const names = text.parts;
  const parts: PagePart[] = [
    { id: 'balance', label: names.balance, icon: 'coins', content: <Balance /> },
    { id: 'devices', label: names.devices, icon: 'keyboard', content: <Devices /> },
    { id: 'tokens', label: names.tokens, icon: 'key', content: <AccessTokens /> },
    { id: 'webhooks', label: names.webhooks, icon: 'link', content: <Webhooks /> },
    {
      id: 'invitations',
      label: names.invitations,
      icon: 'mail',
      count: invitations.data?.length,
      content: <Invitations />,
    },
    { id: 'data', label: names.data, icon: 'download', content: <YourData /> },
    { id: 'look', label: names.look, icon: 'sun', content: <Look /> },
    { id: 'about', label: names.about, icon: 'info', content: <About /> },
  ];
  const head = (
    <>
      <AccountChoice label={account.label} />
      <span className="grow" />
      <Elsewhere />
    </>
  );

  return <PartPage title={text.title} path="/you" parts={parts} part={part} head={head} />;
}

function AccountChoice({ label }: { label: string }) {
  const { me, account, chooseAccount } = useAccount();
  const items: MenuItem[] = me.accounts.map((one) => ({
    label: one.label,
    icon: one.kind === 'TEAM' ? 'users' : 'user',
    checked: one.id === account.id,
    note: one.balance.tokens.toLocaleString(),
    onSelect: () => chooseAccount(one.id),
  }));

  return (
    <Menu label={text.account(label)} items={items} end="chevronDown">
      {label}
    </Menu>
  );
}

/** Elsewhere leads to the pages that have no place in the menu of a small screen. */
function Elsewhere() {
  const { me, linkTo } = useAccount();
  const [, navigate] = useLocation();
  const hasCompany = Object.keys(me.company_permissions).length > 0;

  const items: MenuItem[] = [
    ...(hasCompany
      ? [{ label: text.people, icon: 'users' as const, onSelect: () => navigate(linkTo('/people')) }]
      : []),
    ...(me.operator
      ? [{ label: text.operator, icon: 'gauge' as const, onSelect: () => navigate(linkTo('/operator')) }]
      : []),
    { label: text.signOut, icon: 'signout', onSelect: () => void signOut() },
  ];

  return <Menu label={text.elsewhere} icon="more" items={items} />;
}
