import { expect, test } from 'vitest';
import { canGive, isDomain, isRoleName, listPermissions, makeMatrix, readKinds, rolesOfTeam } from './permissions';

test('makeMatrix has a row for each permission, also for one that only a role knows', () => {
  const roles = [
    { name: 'admin', permissions: ['MANAGE_MEMBERS', 'MANAGE_TEAMS'] },
    { name: 'member', permissions: [] },
    { name: 'later', permissions: ['A_NEW_ONE'] },
  ];

  expect(makeMatrix(roles, ['MANAGE_MEMBERS', 'MANAGE_TEAMS'])).toEqual([
    { permission: 'MANAGE_MEMBERS', has: [true, false, false] },
    { permission: 'MANAGE_TEAMS', has: [true, false, false] },
    { permission: 'A_NEW_ONE', has: [false, false, true] },
  ]);
});

test('rolesOfTeam and listPermissions keep what is granted', () => {
  expect(listPermissions({ GENERATE: true, MANAGE_TEAM: false })).toEqual(['GENERATE']);
  const role = {
    name: 'artist',
    permissions: { GENERATE: true, MANAGE_TEAM: false },
    tools_allowed: [],
    tools_blocked: [],
    plugin_kinds: ['*'],
    spend: null,
  };
  expect(rolesOfTeam([role])).toEqual([{ name: 'artist', permissions: ['GENERATE'] }]);
});

test('canGive needs every permission of the role', () => {
  expect(canGive(['MANAGE_MEMBERS'], [])).toBe(true);
  expect(canGive(['MANAGE_MEMBERS'], ['MANAGE_MEMBERS'])).toBe(true);
  expect(canGive(['MANAGE_MEMBERS'], ['MANAGE_MEMBERS', 'MANAGE_BILLING'])).toBe(false);
});

test('names of roles and domains are checked as the service does', () => {
  expect(isRoleName('artist+lead')).toBe(true);
  expect(isRoleName('Artist')).toBe(false);
  expect(isRoleName('')).toBe(false);
  expect(isRoleName('-a')).toBe(false);
  expect(isDomain('studio.example')).toBe(true);
  expect(isDomain('studio')).toBe(false);
  expect(isDomain('anna@studio.example')).toBe(false);
});

test('readKinds takes commas and spaces, and all kinds for nothing', () => {
  expect(readKinds('photoshop, blender photoshop')).toEqual(['photoshop', 'blender']);
  expect(readKinds(' ')).toEqual(['*']);
  expect(readKinds('blender, *')).toEqual(['*']);
});
