import { queryOptions, useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { addressOf } from '../routes';
import { useSearchValues } from './search';

export type Account = Schemas['Account'];
export type Identity = Schemas['Identity'];

type AccountState = {
  me: Identity;
  /** The account that is acted for: the personal one, or a team. */
  account: Account;
  /** What `team_id` of a call is: absent for the personal account. */
  teamId: string | undefined;
  /** Whether the person has a permission in this account. */
  can: (permission: string) => boolean;
  chooseAccount: (id: string) => void;
  /** Writes the address of a page of the studio for this account. */
  linkTo: (path: string, parameters?: Record<string, string | undefined>) => string;
};

const AccountContext = createContext<AccountState | undefined>(undefined);

export const meKey = ['me'];

/** identityQuery is the question for who is signed in, and the accounts of that person. */
export const identityQuery = queryOptions({
  queryKey: meKey,
  queryFn: async () => dataOf(await api.GET('/me')),
  staleTime: 60_000,
});

/** useIdentity reads who is signed in, and the accounts of that person. */
export const useIdentity = () => useQuery(identityQuery);

/** AccountProvider knows the account that is acted for. It stands in the address (`?team=`), so that a link means the same to a colleague. */
export function AccountProvider({ me, children }: { me: Identity; children: ReactNode }) {
  const [search, setSearch] = useSearchValues();
  const team = search.get('team') ?? undefined;

  const state = useMemo<AccountState | undefined>(() => {
    const personal = me.accounts[0];
    const account = me.accounts.find((one) => one.kind === 'TEAM' && one.id === team) ?? personal;
    if (!account || !personal) {
      return undefined;
    }
    const teamId = account.kind === 'TEAM' ? account.id : undefined;
    return {
      me,
      account,
      teamId,
      can: (permission) => account.permissions[permission] === true,
      chooseAccount: (id) => setSearch({ team: id === personal.id ? undefined : id }, false),
      linkTo: (path, parameters = {}) => addressOf(path, { ...parameters, team: teamId }),
    };
  }, [me, team, setSearch]);

  return <AccountContext value={state}>{children}</AccountContext>;
}

/** useAccount returns the account that is acted for. */
export function useAccount(): AccountState {
  const state = useContext(AccountContext);
  if (!state) {
    throw new Error('useAccount is called outside of an AccountProvider.');
  }
  return state;
}
