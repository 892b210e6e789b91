import type { Schemas } from '../api/client';
import type { CompanyPermission } from '../data/companies';

export const companyPermissions: CompanyPermission[] = [
  'MANAGE_MEMBERS',
  'MANAGE_TEAMS',
  'MANAGE_API_TOKENS',
  'VIEW_COMPANY_REPORTS',
  'MANAGE_BILLING',
];

export const teamPermissions = ['GENERATE', 'USE_PLUGINS', 'MANAGE_TEAM'] as const;

/** Role is a role of a company or a team with the permissions that it has. */
export type Role = { name: string; permissions: string[] };

/** listPermissions returns the names of the permissions that are granted. */
export const listPermissions = (permissions: Record<string, boolean>) =>
  Object.keys(permissions).filter((name) => permissions[name]);

/** rolesOfTeam returns the roles of a team with lists of permissions. */
export const rolesOfTeam = (roles: Schemas['TeamRole'][]): Role[] =>
  roles.map((role) => ({ name: role.name, permissions: listPermissions(role.permissions) }));

/** MatrixRow says for one permission which roles have it, in the order of the roles. */
export type MatrixRow = { permission: string; has: boolean[] };

/** makeMatrix returns one row per permission; permissions that only a role knows come last. */
export function makeMatrix(roles: Role[], known: readonly string[]): MatrixRow[] {
  const all = new Set([...known, ...roles.flatMap((role) => role.permissions)]);

  return [...all].map((permission) => ({
    permission,
    has: roles.map((role) => role.permissions.includes(permission)),
  }));
}

/** canGive reports whether somebody with some permissions may give, change or take a role: they need all of its permissions. */
export const canGive = (mine: readonly string[], role: readonly string[]) =>
  role.every((permission) => mine.includes(permission));

/** isRoleName reports whether the service accepts a text as the name of a role. */
export const isRoleName = (name: string) => /^[a-z0-9][a-z0-9_+-]{0,119}$/.test(name);

/** isDomain reports whether a text looks like a domain; the service decides. */
export const isDomain = (text: string) => /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/i.test(text);

/** readKinds reads the kinds of apps that a person typed, separated by commas or spaces; nothing means all of them. */
export function readKinds(text: string): string[] {
  const kinds = text.split(/[\s,]+/).filter(Boolean);

  return kinds.length === 0 || kinds.includes('*') ? ['*'] : [...new Set(kinds)];
}
