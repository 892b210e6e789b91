# Derived from _async by build/clients. Do not edit.
"""The calls of the interface, by resource."""

from __future__ import annotations

from typing import Dict, List, Optional, cast

from .. import _operations as operations
from .. import _types as types
from .pages import Pages
from .session import Session
from .streams import Events


class Auth:
    """Sign-in of a device, step by step; the client's sign_in does it whole."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def start_device(
        self,
        *,
        plugin_kind: Optional[str] = None,
    ) -> types.DeviceCodes:
        """Start the sign-in of a device.

        Begins the device authorization flow (RFC 8628). Show `user_code` to the person, send
        them to `verification_url` (append `&intent=signup` for new people), and poll with
        `device_code`.
        """
        answer = self._session.call(
            operations.START_DEVICE,
            {},
            body={
                "plugin_kind": plugin_kind,
            },
        )
        return cast(types.DeviceCodes, answer)

    def poll_device(
        self,
        *,
        device_code: str,
    ) -> types.SignInResult:
        """Poll for the tokens, with the code in the body.

        The same as the `GET`, for clients that keep secrets out of URLs.
        """
        answer = self._session.call(
            operations.POLL_DEVICE_BY_BODY,
            {},
            body={
                "device_code": device_code,
            },
        )
        return cast(types.SignInResult, answer)

    def refresh_token(
        self,
        *,
        refresh_token: str,
    ) -> types.Tokens:
        """Get a new ID token.

        Works after the ID token has expired. Store the `refresh_token` of the response: usually
        it is the one you sent, and sometimes its successor. A replaced refresh token works for
        one more minute, so that a lost response does not sign the device out; a later use does.
        401 `TOKEN_INVALID`: sign in again. 503 `UPSTREAM_UNAVAILABLE`: keep the token and try
        again later.
        """
        answer = self._session.call(
            operations.REFRESH_TOKEN,
            {},
            body={
                "refresh_token": refresh_token,
            },
        )
        return cast(types.Tokens, answer)

    def revoke_device(
        self,
        *,
        device_id: Optional[str] = None,
    ) -> None:
        """Sign a device out.

        Signs one device of the person out at once, and invalidates its ID token: the device in
        `X-Device-Id`, or else the device that sends the request. Needs an ID token.
        """
        self._session.call(
            operations.REVOKE_DEVICE,
            {
                "device_id": device_id,
            },
        )

    def end_session(
        self,
        session_id: str,
    ) -> None:
        """Sign a browser out.

        Signs one browser of the person out at once, and invalidates its tokens. Needs an ID
        token.
        """
        self._session.call(
            operations.END_SESSION,
            {
                "session_id": session_id,
            },
        )

    def sign_out_everywhere(
        self,
    ) -> None:
        """Sign out everywhere.

        Signs out every device and browser of the person. Access tokens keep working. Needs an ID
        token.
        """
        self._session.call(
            operations.SIGN_OUT_EVERYWHERE,
            {},
        )

    def list_devices(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Device, types.DeviceList]:
        """List my devices.

        Lists the devices and browsers in which the person is signed in, the newest first. To
        sign a device out, send its `id` as `X-Device-Id` to `POST /auth/device/revoke`; to sign
        a browser out, call `DELETE /sessions/{id}`. Needs an ID token.
        """
        return Pages(
            self._session,
            operations.LIST_DEVICES,
            {
                "limit": limit,
                "cursor": cursor,
            },
        )


class MeCalls:
    """The caller and their accounts."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(
        self,
    ) -> types.Identity:
        """Get the current person.

        Returns the person, the accounts that the credential can act for, and the person's
        permissions in their companies. An app does not see teams whose role forbids it. A
        personal access token sees only the personal account, a company access token the teams of
        its company. Also served at `/me`.
        """
        answer = self._session.call(
            operations.GET_ME,
            {},
        )
        return cast(types.Identity, answer)

    def delete(
        self,
        *,
        email: str,
    ) -> None:
        """Delete my account.

        Deletes the account of the person for good: every device, browser and access token is
        signed out, memberships end, and the files and prompts of the personal account are
        erased. Runs that teams paid for stay with the teams; their reports show a deleted
        person. Tokens of the personal account are lost. The body repeats the mail address as a
        confirmation. Needs an ID token. 403 `FORBIDDEN` with `reason` `runs_active`: some runs
        have not ended; cancel them or wait. With `reason` `last_admin`: the person is the last
        admin of a company.
        """
        self._session.call(
            operations.DELETE_ME,
            {},
            body={
                "email": email,
            },
        )

    def claim_top_up(
        self,
    ) -> types.TopUpResult:
        """Claim the free top-up.

        Adds the operator's free tokens to the personal account, once per window. 403 `FORBIDDEN`
        with `reason` `off` if the operator offers none, or `window` if they were claimed
        already. Company access tokens are refused.
        """
        answer = self._session.call(
            operations.CLAIM_TOP_UP,
            {},
        )
        return cast(types.TopUpResult, answer)

    def list_ledger(
        self,
        *,
        group_by: Optional[types.LedgerGroup] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.LedgerEntry, types.LedgerList]:
        """List received and spent tokens.

        Lists the entries of the account that moved tokens, the newest first: grants, top-ups and
        charges of runs. A run is charged once, when it ends; tokens that were only held for it
        have no entry. With `group_by=day` the response has the sums of each day in UTC instead,
        the oldest first, for at most 366 days; by default for the last 30. The period is
        extended to whole days. Days without entries are included, days of the future are not.
        """
        return Pages(
            self._session,
            operations.LIST_LEDGER,
            {
                "group_by": group_by,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )


class AccessTokens:
    """Long-lived credentials for scripts, of a person or of a company."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.AccessToken, types.AccessTokenList]:
        """List my access tokens.

        Lists every access token of the person, the newest first. Tokens that a company's admin
        created have a `company_id`. Needs an ID token, like all operations on access tokens.
        """
        return Pages(
            self._session,
            operations.LIST_ACCESS_TOKENS,
            {
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create(
        self,
        *,
        name: str,
    ) -> types.AccessToken:
        """Create a personal access token.

        The response has the value of the token. It is shown only once.
        """
        answer = self._session.call(
            operations.CREATE_ACCESS_TOKEN,
            {},
            body={
                "name": name,
            },
        )
        return cast(types.AccessToken, answer)

    def delete(
        self,
        token_id: str,
    ) -> None:
        """Delete an access token.

        The token stops working at once. People can also delete a token that a company created
        for them.
        """
        self._session.call(
            operations.DELETE_ACCESS_TOKEN,
            {
                "token_id": token_id,
            },
        )

    def regenerate(
        self,
        token_id: str,
    ) -> types.AccessToken:
        """Regenerate a personal access token.

        The old value stops working at once.
        """
        answer = self._session.call(
            operations.REGENERATE_ACCESS_TOKEN,
            {
                "token_id": token_id,
            },
        )
        return cast(types.AccessToken, answer)

    def list_of_company(
        self,
        company_id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.AccessToken, types.AccessTokenList]:
        """List a company's access tokens.

        Needs `MANAGE_API_TOKENS` in the company, like all operations on company access tokens.
        """
        return Pages(
            self._session,
            operations.LIST_COMPANY_ACCESS_TOKENS,
            {
                "company_id": company_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create_for_company(
        self,
        company_id: str,
        *,
        name: str,
        uid: str,
    ) -> types.AccessToken:
        """Create a company access token.

        The token acts as the member `uid` in the company's teams that they belong to. The
        service notifies the member, who sees the token in their own list and can delete it.
        """
        answer = self._session.call(
            operations.CREATE_COMPANY_ACCESS_TOKEN,
            {
                "company_id": company_id,
            },
            body={
                "name": name,
                "uid": uid,
            },
        )
        return cast(types.AccessToken, answer)

    def delete_of_company(
        self,
        company_id: str,
        token_id: str,
    ) -> None:
        """Delete a company access token.

        The token stops working at once.
        """
        self._session.call(
            operations.DELETE_COMPANY_ACCESS_TOKEN,
            {
                "company_id": company_id,
                "token_id": token_id,
            },
        )

    def regenerate_of_company(
        self,
        company_id: str,
        token_id: str,
    ) -> types.AccessToken:
        """Regenerate a company access token.

        The old value stops working at once.
        """
        answer = self._session.call(
            operations.REGENERATE_COMPANY_ACCESS_TOKEN,
            {
                "company_id": company_id,
                "token_id": token_id,
            },
        )
        return cast(types.AccessToken, answer)


class Companies:
    """Companies with their members, roles, mail domains and audit log."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
    ) -> Pages[types.Company, types.CompanyList]:
        """List my companies.

        Lists the companies of the person by name, all in one response. Needs an ID token, like
        all operations on companies, teams and invitations. Companies, teams and invitations of
        others are `NOT_FOUND`. An operation that their role does not allow is `FORBIDDEN` with
        `reason` `permission`.
        """
        return Pages(
            self._session,
            operations.LIST_COMPANIES,
            {},
        )

    def get(
        self,
        company_id: str,
    ) -> types.Company:
        """Get a company.

        Every member of the company may read it.
        """
        answer = self._session.call(
            operations.GET_COMPANY,
            {
                "company_id": company_id,
            },
        )
        return cast(types.Company, answer)

    def change(
        self,
        company_id: str,
        *,
        name: Optional[str] = None,
        time_zone: Optional[str] = None,
    ) -> types.Company:
        """Change a company's settings.

        Absent fields stay unchanged. Needs `MANAGE_MEMBERS`, and also `MANAGE_BILLING` to change
        the time zone where a team has a hard budget. A new time zone recounts the days of all
        reports, which takes a while for many runs: ten changes a day, then 429 `RATE_LIMITED`.
        """
        answer = self._session.call(
            operations.CHANGE_COMPANY,
            {
                "company_id": company_id,
            },
            body={
                "name": name,
                "time_zone": time_zone,
            },
        )
        return cast(types.Company, answer)

    def list_members(
        self,
        company_id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Member, types.MemberList]:
        """List members.

        Sorted by e-mail address. Needs `MANAGE_MEMBERS`.
        """
        return Pages(
            self._session,
            operations.LIST_MEMBERS,
            {
                "company_id": company_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def set_member(
        self,
        company_id: str,
        uid: str,
        *,
        role: str,
    ) -> types.Member:
        """Change the role of a member.

        People join by invitation or by their mail domain. Needs `MANAGE_MEMBERS`, and every
        permission that the new role and the member have: callers cannot grant permissions that
        they lack, nor change members with more permissions. `FORBIDDEN` with `reason`
        `last_admin` if no member with `MANAGE_MEMBERS` would be left.
        """
        answer = self._session.call(
            operations.SET_MEMBER,
            {
                "company_id": company_id,
                "uid": uid,
            },
            body={
                "role": role,
            },
        )
        return cast(types.Member, answer)

    def remove_member(
        self,
        company_id: str,
        uid: str,
    ) -> None:
        """Remove a member, or leave the company.

        The member also leaves the company's teams, and the access tokens that the company
        created for them stop working at once. Members can always remove themselves; for others
        it needs the same permissions as `PUT`. `FORBIDDEN` with `reason` `last_admin` if no
        member with `MANAGE_MEMBERS` would be left.
        """
        self._session.call(
            operations.REMOVE_MEMBER,
            {
                "company_id": company_id,
                "uid": uid,
            },
        )

    def list_roles(
        self,
        company_id: str,
    ) -> Pages[types.CompanyRole, types.CompanyRoleList]:
        """List the roles of a company.

        Sorted by name, all in one response. Every member may read the roles.
        """
        return Pages(
            self._session,
            operations.LIST_ROLES,
            {
                "company_id": company_id,
            },
        )

    def set_role(
        self,
        company_id: str,
        role: str,
        *,
        permissions: List[types.CompanyPermission],
    ) -> types.CompanyRole:
        """Create or replace a role of a company.

        Needs `MANAGE_MEMBERS`, and every permission that the role has or gets. The role `admin`
        always has every permission. `FORBIDDEN` with `reason` `last_admin` if no member with
        `MANAGE_MEMBERS` would be left.
        """
        answer = self._session.call(
            operations.SET_ROLE,
            {
                "company_id": company_id,
                "role": role,
            },
            body={
                "permissions": permissions,
            },
        )
        return cast(types.CompanyRole, answer)

    def delete_role(
        self,
        company_id: str,
        role: str,
    ) -> None:
        """Delete a role of a company.

        Needs the same permissions as `PUT`. A role in use by members or open invitations cannot
        be deleted, nor can `admin` and `member`.
        """
        self._session.call(
            operations.DELETE_ROLE,
            {
                "company_id": company_id,
                "role": role,
            },
        )

    def list_domains(
        self,
        company_id: str,
    ) -> Pages[types.Domain, types.DomainList]:
        """List mail domains.

        Sorted by name, all in one response. Needs `MANAGE_MEMBERS`.
        """
        return Pages(
            self._session,
            operations.LIST_DOMAINS,
            {
                "company_id": company_id,
            },
        )

    def add_domain(
        self,
        company_id: str,
        *,
        domain: str,
        team_id: Optional[str] = None,
        team_role: Optional[str] = None,
    ) -> types.Domain:
        """Add a mail domain.

        Needs `MANAGE_MEMBERS`, and the right to manage the team if the request names one.
        Publish the TXT record in the response, then call `verify`.
        """
        answer = self._session.call(
            operations.ADD_DOMAIN,
            {
                "company_id": company_id,
            },
            body={
                "domain": domain,
                "team_id": team_id,
                "team_role": team_role,
            },
        )
        return cast(types.Domain, answer)

    def remove_domain(
        self,
        company_id: str,
        domain: str,
    ) -> None:
        """Remove a mail domain.

        People who joined through the domain stay members. Needs `MANAGE_MEMBERS`.
        """
        self._session.call(
            operations.REMOVE_DOMAIN,
            {
                "company_id": company_id,
                "domain": domain,
            },
        )

    def verify_domain(
        self,
        company_id: str,
        domain: str,
    ) -> types.Domain:
        """Verify a mail domain.

        Looks up the TXT record. Once the record exists, everyone with a verified address in the
        domain joins the company, now and later. `INVALID_REQUEST` while the record is missing.
        Needs `MANAGE_MEMBERS`.
        """
        answer = self._session.call(
            operations.VERIFY_DOMAIN,
            {
                "company_id": company_id,
                "domain": domain,
            },
        )
        return cast(types.Domain, answer)

    def list_audit(
        self,
        company_id: str,
        *,
        act: Optional[str] = None,
        uid: Optional[str] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.AuditRecord, types.AuditList]:
        """Read the audit log.

        Lists the acts in the company, the newest first. Needs `MANAGE_MEMBERS`.
        """
        return Pages(
            self._session,
            operations.LIST_AUDIT,
            {
                "company_id": company_id,
                "act": act,
                "uid": uid,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def get_scim_token(
        self,
        company_id: str,
    ) -> types.ScimToken:
        """Get the SCIM token.

        Returns the URL at which an identity provider manages the members and teams of the
        company (SCIM 2.0), and the SCIM token without its value. Needs `MANAGE_MEMBERS`. 403
        `FORBIDDEN` with `reason` `plan`: only companies with the plan `ENTERPRISE` can use SCIM.
        404 `NOT_FOUND` if the company has no SCIM token.
        """
        answer = self._session.call(
            operations.GET_SCIM_TOKEN,
            {
                "company_id": company_id,
            },
        )
        return cast(types.ScimToken, answer)

    def create_scim_token(
        self,
        company_id: str,
    ) -> types.ScimToken:
        """Create the SCIM token.

        Creates the token that the identity provider presents. A company has one SCIM token: a
        previous one stops working at once. Needs the plan `ENTERPRISE` and every permission in
        the company, since the identity provider can remove any member.
        """
        answer = self._session.call(
            operations.CREATE_SCIM_TOKEN,
            {
                "company_id": company_id,
            },
        )
        return cast(types.ScimToken, answer)

    def delete_scim_token(
        self,
        company_id: str,
    ) -> None:
        """Delete the SCIM token.

        The token stops working at once; members and teams stay. Needs `MANAGE_MEMBERS`.
        """
        self._session.call(
            operations.DELETE_SCIM_TOKEN,
            {
                "company_id": company_id,
            },
        )


class Teams:
    """Teams of a company, which share tools, files and a balance."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        company_id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Team, types.TeamList]:
        """List the teams of a company.

        Sorted by name. Every member of the company may list the teams.
        """
        return Pages(
            self._session,
            operations.LIST_TEAMS,
            {
                "company_id": company_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create(
        self,
        company_id: str,
        *,
        name: str,
    ) -> types.Team:
        """Create a team.

        A new team has no members. Needs `MANAGE_TEAMS`.
        """
        answer = self._session.call(
            operations.CREATE_TEAM,
            {
                "company_id": company_id,
            },
            body={
                "name": name,
            },
        )
        return cast(types.Team, answer)

    def get(
        self,
        team_id: str,
    ) -> types.Team:
        """Get a team.

        Every member of the company may read its teams.
        """
        answer = self._session.call(
            operations.GET_TEAM,
            {
                "team_id": team_id,
            },
        )
        return cast(types.Team, answer)

    def rename(
        self,
        team_id: str,
        *,
        name: str,
    ) -> types.Team:
        """Rename a team.

        Needs `MANAGE_TEAMS` in the company, or `MANAGE_TEAM` in the team. The latter counts only
        if the role in the team allows the calling app (else `PLUGIN_NOT_ALLOWED`). The same
        holds for the members and roles of the team.
        """
        answer = self._session.call(
            operations.RENAME_TEAM,
            {
                "team_id": team_id,
            },
            body={
                "name": name,
            },
        )
        return cast(types.Team, answer)

    def remove(
        self,
        team_id: str,
    ) -> None:
        """Delete a team.

        All members leave the team, and invitations to it stop working. Needs `MANAGE_TEAMS`.
        """
        self._session.call(
            operations.REMOVE_TEAM,
            {
                "team_id": team_id,
            },
        )

    def get_budget(
        self,
        team_id: str,
    ) -> types.Budget:
        """Get a team's budget.

        Returns the amount that the team plans to spend in a calendar month of the company's time
        zone, and the amount spent in the current month. Needs `MANAGE_BILLING`, or `MANAGE_TEAM`
        in the team. 404 `NOT_FOUND` if the team has no budget.
        """
        answer = self._session.call(
            operations.GET_BUDGET,
            {
                "team_id": team_id,
            },
        )
        return cast(types.Budget, answer)

    def set_budget(
        self,
        team_id: str,
        *,
        tokens: int,
        hard: Optional[bool] = None,
        webhook_url: Optional[str] = None,
    ) -> types.Budget:
        """Set a team's budget.

        When 50, 80 and 100 % of the budget are spent, the service sends mail to the managers of
        the team and of billing, and an event of type `budget.reached` (a `BudgetEvent`, signed
        with the team's webhook secret) to the webhook of the budget, each once a month. A hard
        budget refuses runs that would exceed it with 402 `INSUFFICIENT_BALANCE` and `reason`
        `budget`; other budgets only send alerts. Needs `MANAGE_BILLING`.
        """
        answer = self._session.call(
            operations.SET_BUDGET,
            {
                "team_id": team_id,
            },
            body={
                "tokens": tokens,
                "hard": hard,
                "webhook_url": webhook_url,
            },
        )
        return cast(types.Budget, answer)

    def delete_budget(
        self,
        team_id: str,
    ) -> None:
        """Delete a team's budget.

        Needs `MANAGE_BILLING`.
        """
        self._session.call(
            operations.DELETE_BUDGET,
            {
                "team_id": team_id,
            },
        )

    def list_members(
        self,
        team_id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.TeamMember, types.TeamMemberList]:
        """List the members of a team.

        Sorted by e-mail address. For members of the team, and with `MANAGE_TEAMS`.
        """
        return Pages(
            self._session,
            operations.LIST_TEAM_MEMBERS,
            {
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def set_member(
        self,
        team_id: str,
        uid: str,
        *,
        role: str,
    ) -> types.TeamMember:
        """Add a member to a team, or change their role.

        Needs the right to manage the team; callers who have it only by `MANAGE_TEAM` need every
        permission that the role and the member have. The person must be a member of the company.
        `FORBIDDEN` with `reason` `limits`: callers with only `MANAGE_TEAM` cannot give
        themselves or others a role with wider limits than their own.
        """
        answer = self._session.call(
            operations.SET_TEAM_MEMBER,
            {
                "team_id": team_id,
                "uid": uid,
            },
            body={
                "role": role,
            },
        )
        return cast(types.TeamMember, answer)

    def remove_member(
        self,
        team_id: str,
        uid: str,
    ) -> None:
        """Remove a member from a team, or leave the team.

        The person stays a member of the company. Members can always remove themselves; for
        others it needs the same permissions as `PUT`.
        """
        self._session.call(
            operations.REMOVE_TEAM_MEMBER,
            {
                "team_id": team_id,
                "uid": uid,
            },
        )

    def list_roles(
        self,
        team_id: str,
    ) -> Pages[types.TeamRole, types.TeamRoleList]:
        """List the roles of a team.

        Sorted by name, all in one response. For members of the team, and with `MANAGE_TEAMS`.
        """
        return Pages(
            self._session,
            operations.LIST_TEAM_ROLES,
            {
                "team_id": team_id,
            },
        )

    def set_role(
        self,
        team_id: str,
        role: str,
        *,
        permissions: Dict[str, bool],
        tools_allowed: Optional[List[str]] = None,
        tools_blocked: Optional[List[str]] = None,
        plugin_kinds: Optional[List[str]] = None,
        spend: Optional[types.SpendLimit] = None,
    ) -> types.TeamRole:
        """Create or replace a role of a team.

        Needs the right to manage the team; callers who have it only by `MANAGE_TEAM` need every
        permission that the role has or gets. Absent fields have the values of a new role.
        `FORBIDDEN` with `reason` `limits`: callers with only `MANAGE_TEAM` cannot give a role
        wider limits (`spend`, `plugin_kinds`, `tools_allowed`, `tools_blocked`) than their own
        role has.
        """
        answer = self._session.call(
            operations.SET_TEAM_ROLE,
            {
                "team_id": team_id,
                "role": role,
            },
            body={
                "permissions": permissions,
                "tools_allowed": tools_allowed,
                "tools_blocked": tools_blocked,
                "plugin_kinds": plugin_kinds,
                "spend": spend,
            },
        )
        return cast(types.TeamRole, answer)

    def delete_role(
        self,
        team_id: str,
        role: str,
    ) -> None:
        """Delete a role of a team.

        Needs the same permissions as `PUT`. A role in use by members, open invitations or
        domains cannot be deleted, nor can `member`.
        """
        self._session.call(
            operations.DELETE_TEAM_ROLE,
            {
                "team_id": team_id,
                "role": role,
            },
        )


class Invitations:
    """Invitations to companies and teams."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        company_id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Invitation, types.InvitationList]:
        """List the open invitations of a company.

        The newest first. Needs `MANAGE_MEMBERS`.
        """
        return Pages(
            self._session,
            operations.LIST_INVITATIONS,
            {
                "company_id": company_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create(
        self,
        company_id: str,
        *,
        email: Optional[str] = None,
        company_role: Optional[str] = None,
        team_id: Optional[str] = None,
        team_role: Optional[str] = None,
        uses: Optional[int] = None,
        lifetime_seconds: Optional[int] = None,
    ) -> types.Invitation:
        """Invite people.

        With `email`, the service mails the invitation link to that address and shows it nowhere
        else. Without `email`, the response has the link in `url`, and it is shown only once.
        Needs `MANAGE_MEMBERS` and every permission of `company_role`; an invitation to a team
        also needs the permissions for adding a member with that role.
        """
        answer = self._session.call(
            operations.CREATE_INVITATION,
            {
                "company_id": company_id,
            },
            body={
                "email": email,
                "company_role": company_role,
                "team_id": team_id,
                "team_role": team_role,
                "uses": uses,
                "lifetime_seconds": lifetime_seconds,
            },
        )
        return cast(types.Invitation, answer)

    def revoke(
        self,
        invitation_id: str,
    ) -> None:
        """Revoke an invitation.

        The link stops working. Needs `MANAGE_MEMBERS` in the company.
        """
        self._session.call(
            operations.REVOKE_INVITATION,
            {
                "invitation_id": invitation_id,
            },
        )

    def list_mine(
        self,
    ) -> Pages[types.ReceivedInvitation, types.ReceivedInvitationList]:
        """List my invitations.

        Lists the open invitations for the e-mail address of the person, the newest first, all in
        one response. The list is empty until the address is verified.
        """
        return Pages(
            self._session,
            operations.LIST_MY_INVITATIONS,
            {},
        )

    def accept(
        self,
        *,
        token: str,
    ) -> None:
        """Accept an invitation by its token.

        Existing members keep their roles.
        """
        self._session.call(
            operations.ACCEPT_INVITATION,
            {},
            body={
                "token": token,
            },
        )

    def accept_mine(
        self,
        invitation_id: str,
    ) -> None:
        """Accept one of my invitations.

        Accepts an invitation of the list. Existing members keep their roles.
        """
        self._session.call(
            operations.ACCEPT_MY_INVITATION,
            {
                "invitation_id": invitation_id,
            },
        )


class Tools:
    """The tools that an account may use, their tags, kits and forms."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        team_id: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
        tool_tag: Optional[str] = None,
    ) -> Pages[types.Tool, types.ToolList]:
        """List tools.

        Lists the tools that the account may use, in the operator's order. Tools that are added
        or removed between two pages do not shift other tools. Send the response's `ETag` back as
        `If-None-Match`: 304 means that the list has not changed.
        """
        return Pages(
            self._session,
            operations.LIST_TOOLS,
            {
                "team_id": team_id,
                "cursor": cursor,
                "limit": limit,
                "tool_tag": tool_tag,
            },
        )

    def get(
        self,
        tool_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.ToolDetail:
        """Get a tool.

        Returns one tool with its form. `tool_fields_hash` changes with every edit of the tool; a
        run must send the current hash.
        """
        answer = self._session.call(
            operations.GET_TOOL,
            {
                "tool_id": tool_id,
                "team_id": team_id,
            },
        )
        return cast(types.ToolDetail, answer)

    def list_tags(
        self,
        *,
        team_id: Optional[str] = None,
    ) -> Pages[types.ToolTag, types.ToolTagList]:
        """List tool tags.

        Returns all tags in one response, sorted by type, then by label.
        """
        return Pages(
            self._session,
            operations.LIST_TOOL_TAGS,
            {
                "team_id": team_id,
            },
        )

    def list_kits(
        self,
        *,
        team_id: Optional[str] = None,
    ) -> Pages[types.Kit, types.KitList]:
        """List kits.

        Lists curated selections of tools. Kits without a tool that the account may use are
        omitted.
        """
        return Pages(
            self._session,
            operations.LIST_KITS,
            {
                "team_id": team_id,
            },
        )


class RunsCalls:
    """Runs of tools: prices, creation, status and results."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(
        self,
        request_id: str,
        *,
        include: Optional[types.GenerationInclude] = None,
        team_id: Optional[str] = None,
    ) -> types.Generation:
        """Get a run.

        `status_url` is this URL. While `status` is `pending`, wait `retry_after_seconds` before
        the next poll; the wait is counted separately for each device and each access token. An
        earlier poll is answered too, but counts as a start of a run while starts are left. When
        none are left, the first early poll of a run is still answered, and each further one gets
        429 `RATE_LIMITED`: wait for `Retry-After`; the run continues. 404 `NOT_FOUND`: the
        account has no such run; runs of a team need its `team_id`.
        """
        answer = self._session.call(
            operations.GET_GENERATION,
            {
                "request_id": request_id,
                "include": include,
                "team_id": team_id,
            },
        )
        return cast(types.Generation, answer)

    def cancel(
        self,
        request_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.Generation:
        """Cancel a run.

        A queued run ends at once. A running one ends as soon as its engine stops, so continue to
        poll while the run is `pending`. Its tokens are released in full. Safe to repeat. 403
        `FORBIDDEN` with `reason` `permission`: only the person who started the run, or a manager
        of the team, can cancel it.
        """
        answer = self._session.call(
            operations.CANCEL_GENERATION,
            {
                "request_id": request_id,
                "team_id": team_id,
            },
        )
        return cast(types.Generation, answer)

    def events(
        self,
        request_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> Events:
        """Follow a run.

        Server-sent events until the run has ended; following does not count as polling. The
        `data` of each event is one line of JSON:

        - `status`: the whole record, a `Generation`; at the start, when the stage changes, and
        when the position in the queue of the model server changes.
        - `progress`: a `GenerationProgress`.
        - `preview`: a `GenerationPreview`, an unfinished picture; each one replaces the previous
        one.
        - `step`: a `GenerationStep`, for flows only: a run of a step was created, its stage
        changed, or it ended. If it succeeded, it has its results. A `status` has all steps, so
        no `step` comes beside it.
        - `done`: the whole record of a run that has ended. It is the last event, and the service
        closes the stream; for a run that had ended before, it comes at once.
        - `reconnect`: an `EventReconnect`. The node that serves the stream stops. It is the last
        event of this connection: connect again at once, with the last `id` as `Last-Event-ID`;
        another node continues.

        Lines that begin with a colon keep the connection open: skip them, and skip events that
        you do not know. If the stream breaks before `done`, connect again with the last `id` as
        `Last-Event-ID`, or poll instead. The status record is authoritative: events are states,
        and a state may be skipped if a newer one has replaced it.
        """
        return Events(
            self._session,
            operations.STREAM_GENERATION,
            {
                "request_id": request_id,
                "team_id": team_id,
            },
        )

    def list(
        self,
        *,
        status: Optional[types.GenerationStatus] = None,
        include: Optional[types.GenerationInclude] = None,
        tool_id: Optional[str] = None,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Generation, types.GenerationList]:
        """List runs.

        Lists the account's runs, the newest first.
        """
        return Pages(
            self._session,
            operations.LIST_GENERATIONS,
            {
                "status": status,
                "include": include,
                "tool_id": tool_id,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )


class Webhooks:
    """Notifications to your server when a run has ended."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list_attempts(
        self,
        request_id: str,
        *,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.WebhookAttempt, types.WebhookAttemptList]:
        """List webhook attempts.

        Lists every attempt to deliver the webhook of a run, the newest first. The list is empty
        if the run has no `webhook_url` or has not ended.
        """
        return Pages(
            self._session,
            operations.LIST_WEBHOOK_ATTEMPTS,
            {
                "request_id": request_id,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def redeliver(
        self,
        request_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.GenerationWebhook:
        """Redeliver a webhook.

        Sends the event once more, whether it was delivered or not, with the same `webhook-id`.
        404 `NOT_FOUND` if there is no event: the run has no `webhook_url` or has not ended.
        """
        answer = self._session.call(
            operations.REDELIVER_WEBHOOK,
            {
                "request_id": request_id,
                "team_id": team_id,
            },
        )
        return cast(types.GenerationWebhook, answer)

    def list_deliveries(
        self,
        *,
        status: Optional[types.WebhookState] = None,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.WebhookDelivery, types.WebhookDeliveryList]:
        """List webhook deliveries.

        Lists the deliveries of webhooks of the account's runs, the newest first: one for each
        run that has a `webhook_url` and has ended. `POST
        /generate/{request_id}/webhook-attempts/redeliver` sends one once more.
        """
        return Pages(
            self._session,
            operations.LIST_WEBHOOK_DELIVERIES,
            {
                "status": status,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def get_secret(
        self,
        *,
        team_id: Optional[str] = None,
    ) -> types.WebhookSecret:
        """Get the webhook secret.

        Every account has one webhook secret; the first call creates it. Keep it on your server
        and verify each event with it, with any library for Standard Webhooks.
        """
        answer = self._session.call(
            operations.GET_WEBHOOK_SECRET,
            {
                "team_id": team_id,
            },
        )
        return cast(types.WebhookSecret, answer)

    def rotate_secret(
        self,
        *,
        team_id: Optional[str] = None,
    ) -> types.WebhookSecret:
        """Rotate the webhook secret.

        Creates a new secret. For 24 hours events carry a signature of each secret, so that your
        server can switch in between.
        """
        answer = self._session.call(
            operations.ROTATE_WEBHOOK_SECRET,
            {
                "team_id": team_id,
            },
        )
        return cast(types.WebhookSecret, answer)


class UploadsCalls:
    """Files that people upload as inputs of runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        type: Optional[types.Medium] = None,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.Upload, types.UploadList]:
        """List uploads.

        Lists the account's uploads, the newest first.
        """
        return Pages(
            self._session,
            operations.LIST_UPLOADS,
            {
                "type": type,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def get(
        self,
        upload_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.Upload:
        """Get an upload.

        Returns one upload, with signed URLs.
        """
        answer = self._session.call(
            operations.GET_UPLOAD,
            {
                "upload_id": upload_id,
                "team_id": team_id,
            },
        )
        return cast(types.Upload, answer)

    def delete(
        self,
        upload_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> None:
        """Delete an upload.

        New runs cannot use the upload, and its URLs stop working. 403 `FORBIDDEN` with `reason`
        `permission`: only the person who uploaded it, or a manager of the team, can delete it.
        """
        self._session.call(
            operations.DELETE_UPLOAD,
            {
                "upload_id": upload_id,
                "team_id": team_id,
            },
        )


class Library:
    """Results of runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        team_id: Optional[str] = None,
        q: Optional[str] = None,
        type: Optional[types.Medium] = None,
        tool_id: Optional[str] = None,
        flow_request_id: Optional[str] = None,
        aspect_ratio: Optional[types.AspectRatio] = None,
        resolution: Optional[types.Resolution] = None,
        model_family_tool_tag_id: Optional[str] = None,
        media_tool_tag_id: Optional[str] = None,
        favorited: Optional[bool] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        sort: Optional[types.LibrarySort] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.LibraryItem, types.LibraryList]:
        """List results.

        Lists the results of runs that succeeded, one item per result. Results of type `TEXT` are
        omitted. A cursor is valid only with the same filters and order. 400
        `ACCOUNT_SELECTION_INVALID`: `team_id` is malformed. 403 `FORBIDDEN` with `reason`
        `not_a_member`: the person is not a member of one of the teams; results of the other
        teams are not returned either.
        """
        return Pages(
            self._session,
            operations.LIST_LIBRARY,
            {
                "team_id": team_id,
                "q": q,
                "type": type,
                "tool_id": tool_id,
                "flow_request_id": flow_request_id,
                "aspect_ratio": aspect_ratio,
                "resolution": resolution,
                "model_family_tool_tag_id": model_family_tool_tag_id,
                "media_tool_tag_id": media_tool_tag_id,
                "favorited": favorited,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "sort": sort,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def list_marks(
        self,
        *,
        every: Optional[int] = None,
        team_id: Optional[str] = None,
        q: Optional[str] = None,
        type: Optional[types.Medium] = None,
        tool_id: Optional[str] = None,
        flow_request_id: Optional[str] = None,
        aspect_ratio: Optional[types.AspectRatio] = None,
        resolution: Optional[types.Resolution] = None,
        model_family_tool_tag_id: Optional[str] = None,
        media_tool_tag_id: Optional[str] = None,
        favorited: Optional[bool] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        sort: Optional[types.LibrarySort] = None,
    ) -> types.LibraryMarks:
        """List places in the library.

        Counts the results that `GET /library` lists with the same filters and order, and returns
        places in that list, one for every `every` results. Enter the list at a place by its
        `cursor`. A list of more than 10,000 places has places further apart: `index` says where
        they are. Places stay valid while results are added and deleted, but their `index` is the
        one at the time of this call.
        """
        answer = self._session.call(
            operations.LIST_LIBRARY_MARKS,
            {
                "every": every,
                "team_id": team_id,
                "q": q,
                "type": type,
                "tool_id": tool_id,
                "flow_request_id": flow_request_id,
                "aspect_ratio": aspect_ratio,
                "resolution": resolution,
                "model_family_tool_tag_id": model_family_tool_tag_id,
                "media_tool_tag_id": media_tool_tag_id,
                "favorited": favorited,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "sort": sort,
            },
        )
        return cast(types.LibraryMarks, answer)

    def get(
        self,
        library_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.LibraryItemDetail:
        """Get a result.

        Returns one result with the inputs of its run.
        """
        answer = self._session.call(
            operations.GET_LIBRARY_ITEM,
            {
                "library_id": library_id,
                "team_id": team_id,
            },
        )
        return cast(types.LibraryItemDetail, answer)

    def delete(
        self,
        library_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> None:
        """Delete a result.

        Removes the result from the library of everyone in the account, and its URLs stop
        working. Its run stays, with its cost. Unless the operator has set another time, the
        result can be restored for 24 hours. 403 `FORBIDDEN` with `reason` `permission`: only the
        person who created it, or a manager of the team, can delete it.
        """
        self._session.call(
            operations.DELETE_LIBRARY_ITEM,
            {
                "library_id": library_id,
                "team_id": team_id,
            },
        )

    def restore(
        self,
        library_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.LibraryItem:
        """Restore a deleted result.

        Restores the result unchanged, with its note and favourites. Everyone who could delete it
        may restore it. A result that is not deleted stays unchanged. 404 `NOT_FOUND`: the time
        to restore it is over. 413 `STORAGE_QUOTA_EXCEEDED`: the account has no room for it any
        more.
        """
        answer = self._session.call(
            operations.RESTORE_LIBRARY_ITEM,
            {
                "library_id": library_id,
                "team_id": team_id,
            },
        )
        return cast(types.LibraryItem, answer)

    def add_favorite(
        self,
        library_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> None:
        """Add a favourite.

        Each member of a team has their own favourites. Safe to repeat.
        """
        self._session.call(
            operations.ADD_FAVORITE,
            {
                "library_id": library_id,
                "team_id": team_id,
            },
        )

    def remove_favorite(
        self,
        library_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> None:
        """Remove a favourite.

        Safe to repeat.
        """
        self._session.call(
            operations.REMOVE_FAVORITE,
            {
                "library_id": library_id,
                "team_id": team_id,
            },
        )


class Flows:
    """Flows that people save, several tools as one run."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        team_id: Optional[str] = None,
    ) -> Pages[types.FlowSummary, types.FlowList]:
        """List saved flows.

        Lists the flows that were saved for an account, and those that other teams share with its
        company, the oldest first, without their steps. Flows of the operator are tools like
        others: `GET /tools` has both.
        """
        return Pages(
            self._session,
            operations.LIST_FLOWS,
            {
                "team_id": team_id,
            },
        )

    def create(
        self,
        *,
        name: str,
        steps: List[types.FlowStep],
        team_id: Optional[str] = None,
        description: Optional[str] = None,
        fields: Optional[List[types.FlowField]] = None,
        results: Optional[List[str]] = None,
        shared: Optional[bool] = None,
    ) -> types.Flow:
        """Save a flow.

        Saves a flow for the account in `team_id`. It is a tool of this account from now on: its
        `id` is the tool's id, and every client can run it. 400 `INVALID_REQUEST` lists all
        problems, with the step and the field. An account can have 200 flows. 403 `FORBIDDEN`
        with `reason` `permission`: only a manager of a team can share a flow with the company.
        """
        answer = self._session.call(
            operations.CREATE_FLOW,
            {
                "team_id": team_id,
            },
            body={
                "name": name,
                "steps": steps,
                "description": description,
                "fields": fields,
                "results": results,
                "shared": shared,
            },
        )
        return cast(types.Flow, answer)

    def check(
        self,
        *,
        name: str,
        steps: List[types.FlowStep],
        team_id: Optional[str] = None,
        description: Optional[str] = None,
        fields: Optional[List[types.FlowField]] = None,
        results: Optional[List[str]] = None,
        shared: Optional[bool] = None,
    ) -> types.FlowCheck:
        """Check a flow.

        Checks a flow without saving it, and tells what a run of it can cost. The problems are
        the same that saving it would report.
        """
        answer = self._session.call(
            operations.CHECK_FLOW,
            {
                "team_id": team_id,
            },
            body={
                "name": name,
                "steps": steps,
                "description": description,
                "fields": fields,
                "results": results,
                "shared": shared,
            },
        )
        return cast(types.FlowCheck, answer)

    def draft(
        self,
        *,
        library_id: str,
        team_id: Optional[str] = None,
    ) -> types.FlowDraft:
        """Draft a flow from a result.

        Returns a flow that repeats the runs which led to a result: the run that made it, those
        that made its input files, and so on. Uploads and prompts become fields of the flow,
        other values stay as they were. Nothing is saved.
        """
        answer = self._session.call(
            operations.DRAFT_FLOW,
            {
                "team_id": team_id,
            },
            body={
                "library_id": library_id,
            },
        )
        return cast(types.FlowDraft, answer)

    def get(
        self,
        flow_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.Flow:
        """Get a saved flow.

        Returns a flow of the account, or one that is shared with its company, with its steps.
        """
        answer = self._session.call(
            operations.GET_FLOW,
            {
                "flow_id": flow_id,
                "team_id": team_id,
            },
        )
        return cast(types.Flow, answer)

    def change(
        self,
        flow_id: str,
        *,
        version: int,
        name: str,
        steps: List[types.FlowStep],
        team_id: Optional[str] = None,
        description: Optional[str] = None,
        fields: Optional[List[types.FlowField]] = None,
        results: Optional[List[str]] = None,
        shared: Optional[bool] = None,
    ) -> types.Flow:
        """Save a new version of a flow.

        Replaces a flow of the account. Runs that were accepted go on with the version that they
        began with. 412 `CONFLICT`: the flow is no longer at the version in `version`. 403
        `FORBIDDEN` with `reason` `permission`: only the person who made it, or a manager of the
        team, can change it.
        """
        answer = self._session.call(
            operations.CHANGE_FLOW,
            {
                "flow_id": flow_id,
                "team_id": team_id,
            },
            body={
                "version": version,
                "name": name,
                "steps": steps,
                "description": description,
                "fields": fields,
                "results": results,
                "shared": shared,
            },
        )
        return cast(types.Flow, answer)

    def delete(
        self,
        flow_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> None:
        """Delete a flow.

        Nobody can run the flow any more; runs that were accepted go on, and results stay. 403
        `FORBIDDEN` with `reason` `permission`: only the person who made it, or a manager of the
        team, can delete it.
        """
        self._session.call(
            operations.DELETE_FLOW,
            {
                "flow_id": flow_id,
                "team_id": team_id,
            },
        )

    def list_versions(
        self,
        flow_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> Pages[types.FlowVersion, types.FlowVersionList]:
        """List the versions of a flow.

        Lists the last 100 versions of a flow of the account, the newest first. Save an old one
        with `PUT` to go back to it.
        """
        return Pages(
            self._session,
            operations.LIST_FLOW_VERSIONS,
            {
                "flow_id": flow_id,
                "team_id": team_id,
            },
        )


class Boards:
    """Boards on which people arrange uploads, results, texts and runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self,
        *,
        team_id: Optional[str] = None,
        deleted: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.BoardSummary, types.BoardList]:
        """List boards.

        Lists the boards of an account, the newest first, without their nodes.
        """
        return Pages(
            self._session,
            operations.LIST_BOARDS,
            {
                "team_id": team_id,
                "deleted": deleted,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create(
        self,
        *,
        name: str,
        team_id: Optional[str] = None,
    ) -> types.Board:
        """Create a board.

        Creates an empty board for the account in `team_id`. All members of a team can change its
        boards.
        """
        answer = self._session.call(
            operations.CREATE_BOARD,
            {
                "team_id": team_id,
            },
            body={
                "name": name,
            },
        )
        return cast(types.Board, answer)

    def get(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> types.Board:
        """Get a board.

        Returns a board with its nodes, the oldest first. A board with more nodes than `limit`
        has several pages, and so does a board with much text: a page has about a megabyte. To
        read a whole board while others change it, follow its events from the `revision` of the
        first page on.
        """
        answer = self._session.call(
            operations.GET_BOARD,
            {
                "board_id": board_id,
                "team_id": team_id,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast(types.Board, answer)

    def rename(
        self,
        board_id: str,
        *,
        name: str,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> types.Board:
        """Rename a board.

        412 `CONFLICT`: the board is no longer at the revision in `If-Match`.
        """
        answer = self._session.call(
            operations.RENAME_BOARD,
            {
                "board_id": board_id,
                "team_id": team_id,
                "if_match": if_match,
            },
            body={
                "name": name,
            },
        )
        return cast(types.Board, answer)

    def delete(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> None:
        """Delete a board.

        A deleted board can be restored for 30 days. 403 `FORBIDDEN` with `reason` `permission`:
        only the person who created it, or a manager of the team, can delete it.
        """
        self._session.call(
            operations.DELETE_BOARD,
            {
                "board_id": board_id,
                "team_id": team_id,
                "if_match": if_match,
            },
        )

    def restore(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> types.Board:
        """Restore a deleted board.

        Restores the board unchanged. Everyone who could delete it may restore it. A board that
        is not deleted stays unchanged.
        """
        answer = self._session.call(
            operations.RESTORE_BOARD,
            {
                "board_id": board_id,
                "team_id": team_id,
            },
        )
        return cast(types.Board, answer)

    def add_node(
        self,
        board_id: str,
        *,
        kind: types.NodeKind,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
        ref: Optional[str] = None,
        text: Optional[str] = None,
        x: Optional[float] = None,
        y: Optional[float] = None,
        width: Optional[float] = None,
        height: Optional[float] = None,
        z: Optional[int] = None,
    ) -> types.Node:
        """Add a node to a board.

        A node shows a result (`LIBRARY_REF`), an upload (`UPLOAD_REF`) or a run (`GENERATION`,
        with its `request_id` as the `ref`) of the board's account, or a `TEXT`. A board has at
        most 5,000 nodes.
        """
        answer = self._session.call(
            operations.ADD_NODE,
            {
                "board_id": board_id,
                "team_id": team_id,
                "if_match": if_match,
            },
            body={
                "kind": kind,
                "ref": ref,
                "text": text,
                "x": x,
                "y": y,
                "width": width,
                "height": height,
                "z": z,
            },
        )
        return cast(types.Node, answer)

    def change_nodes(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
        create: Optional[List[types.NodeDraft]] = None,
        update: Optional[List[types.NodeUpdate]] = None,
        delete: Optional[List[str]] = None,
    ) -> types.NodeChangesResult:
        """Change many nodes at once.

        Adds, changes and deletes nodes in one step: either all changes are made or none, and the
        board's `revision` grows by one. At most 1,000 nodes in a request, and at most 4 MiB of
        text in the nodes that change. 400 `INVALID_REQUEST` lists every problem.
        """
        answer = self._session.call(
            operations.CHANGE_NODES,
            {
                "board_id": board_id,
                "team_id": team_id,
                "if_match": if_match,
            },
            body={
                "create": create,
                "update": update,
                "delete": delete,
            },
        )
        return cast(types.NodeChangesResult, answer)

    def change_node(
        self,
        board_id: str,
        node_id: str,
        *,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
        ref: Optional[str] = None,
        text: Optional[str] = None,
        x: Optional[float] = None,
        y: Optional[float] = None,
        width: Optional[float] = None,
        height: Optional[float] = None,
        z: Optional[int] = None,
    ) -> types.Node:
        """Change a node.

        Absent fields stay unchanged. The kind of a node cannot change.
        """
        answer = self._session.call(
            operations.CHANGE_NODE,
            {
                "board_id": board_id,
                "node_id": node_id,
                "team_id": team_id,
                "if_match": if_match,
            },
            body={
                "ref": ref,
                "text": text,
                "x": x,
                "y": y,
                "width": width,
                "height": height,
                "z": z,
            },
        )
        return cast(types.Node, answer)

    def delete_node(
        self,
        board_id: str,
        node_id: str,
        *,
        team_id: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> None:
        """Delete a node.

        The result, upload or run that the node showed stays.
        """
        self._session.call(
            operations.DELETE_NODE,
            {
                "board_id": board_id,
                "node_id": node_id,
                "team_id": team_id,
                "if_match": if_match,
            },
        )

    def events(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
    ) -> Events:
        """Follow a board.

        Server-sent events until you disconnect. The `data` of each event is one line of JSON,
        and its `id` a `revision` from which you can resume: all changes up to it were sent.

        - `nodes`: a `BoardChange`, the current state of nodes that were added or changed, and
        the ids of nodes that were deleted. Many changes come in several events.
        - `board`: a `BoardSummary`, at the start, after the changes up to then, and whenever the
        board itself has changed.
        - `reset`: a `BoardSummary`. The changes since your revision are no longer known, or the
        board never had that revision. Read the board again; the stream continues from here.
        - `deleted`: a `BoardSummary`. The board was deleted. It is the last event, and the
        service closes the stream.
        - `reconnect`: an `EventReconnect`. The node that serves the stream stops. It is the last
        event of this connection: connect again at once, with the last `id` as `Last-Event-ID`;
        another node continues.

        Without `Last-Event-ID` the stream begins with the current board and sends changes from
        then on. With it, the stream first sends the changes since that revision: send the
        `revision` of a board that you have just read, or the `id` of the last event. Events are
        states, and a state may be skipped if a newer one has replaced it; applied in order they
        lead to the current board. Progress of a run, or the deletion of a file that a node
        shows, is not a change of the board. Lines that begin with a colon keep the connection
        open.
        """
        return Events(
            self._session,
            operations.STREAM_BOARD,
            {
                "board_id": board_id,
                "team_id": team_id,
            },
        )

    def set_presence(
        self,
        board_id: str,
        *,
        team_id: Optional[str] = None,
        cursor: Optional[types.BoardPoint] = None,
        selected: Optional[List[str]] = None,
    ) -> None:
        """Show that you look at a board.

        Shows you to the others who look at the board, with your cursor and your selection, for
        30 seconds or until the next call. Each call replaces the cursor and the selection of the
        previous one. Following the board with `GET /events` shows you as well, for as long as
        the stream is open; when the last one ends, you are no longer shown. Send at most 10
        calls a second.
        """
        self._session.call(
            operations.SET_PRESENCE,
            {
                "board_id": board_id,
                "team_id": team_id,
            },
            body={
                "cursor": cursor,
                "selected": selected,
            },
        )


class EventStreams:
    """One stream of everything that changes in an account."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def stream(
        self,
        *,
        team_id: Optional[str] = None,
        board_id: Optional[str] = None,
        board_revision: Optional[str] = None,
    ) -> Events:
        """Follow an account.

        Server-sent events about everything that changes in an account, and on the boards in
        `board_id`, until you disconnect. One stream replaces one stream per run and per board.
        The `data` of each event is one line of JSON:

        - `run`: a `Generation` as in `GET /generations`, a run of the account that has started,
        changed or ended. The stream begins with all runs that have not ended.
        - `preview`: a `RunPreview`, an unfinished picture of a run; each one replaces the
        previous one.
        - `balance`: a `Balance`, at the start, after the runs, and whenever it has changed.
        - `board`: a `BoardSummary`, for each board at the start, and whenever the board itself
        has changed.
        - `nodes`: a `BoardChange`, the current state of nodes that were added or changed, and
        the ids of nodes that were deleted. Many changes come in several events.
        - `deleted`: a `BoardSummary`. The board was deleted, and the stream follows it no
        longer.
        - `presence`: a `BoardPresence`, the people who look at a board now, at the start and
        whenever that changes.
        - `reset`: an `EventReset`. Events since your `Last-Event-ID` or `board_revision` are no
        longer known. Read the board that it names again, or without one your lists of runs; the
        stream continues from here.
        - `reconnect`: an `EventReconnect`. The node that serves the stream stops. It is the last
        event of this connection: connect again at once, with the last `id` as `Last-Event-ID`;
        another node continues.

        Events are states: a state may be skipped if a newer one has replaced it, and may come
        twice. If the stream breaks, connect again with the last `id` as `Last-Event-ID`: the
        stream then also sends the runs that have ended and the nodes that have changed since.
        Streams end when your credential does; connect again with the next one. Skip events that
        you do not know. Lines that begin with a colon keep the connection open.
        """
        return Events(
            self._session,
            operations.STREAM_EVENTS,
            {
                "team_id": team_id,
                "board_id": board_id,
                "board_revision": board_revision,
            },
        )


class ReportsCalls:
    """Usage reports of a company."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def usage(
        self,
        *,
        company_id: Optional[str] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        group_by: Optional[str] = None,
        team_id: Optional[str] = None,
        tool_id: Optional[str] = None,
        email: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.UsageRow, types.UsageReport]:
        """Report usage.

        Returns sums over the runs of all teams of the company that ended in the period, in
        groups. Days are days of the company's `time_zone`. `totals` are the sums of all rows, on
        every page. The period stays the same on all pages, even if the request omits it.

        A company access token reports on its own company, an ID token on the company in
        `company_id`, unless the operator forbids that; a personal access token never can.
        Refusals are 403 `FORBIDDEN` with `reason` `credential` (this kind of credential is not
        allowed), `company` (not your company, or none named), `plan` (the company's plan is not
        `ENTERPRISE`) or `permission` (your role lacks `VIEW_COMPANY_REPORTS`). Every call is
        authorized anew.
        """
        return Pages(
            self._session,
            operations.REPORT_USAGE,
            {
                "company_id": company_id,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "group_by": group_by,
                "team_id": team_id,
                "tool_id": tool_id,
                "email": email,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def runs(
        self,
        *,
        company_id: Optional[str] = None,
        start_utc: Optional[str] = None,
        end_utc: Optional[str] = None,
        team_id: Optional[str] = None,
        tool_id: Optional[str] = None,
        email: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.RunRow, types.RunReport]:
        """Report runs.

        Returns one row for each run that ended in the period, the newest first, without its
        inputs and results. The access rules are those of `/reports/usage`.
        """
        return Pages(
            self._session,
            operations.REPORT_RUNS,
            {
                "company_id": company_id,
                "start_utc": start_utc,
                "end_utc": end_utc,
                "team_id": team_id,
                "tool_id": tool_id,
                "email": email,
                "limit": limit,
                "cursor": cursor,
            },
        )


class Operator:
    """The whole installation, for the people whom the setting operators names."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_status(
        self,
    ) -> types.OperatorStatus:
        """Read the state of the installation.

        Engines, queues and nodes, as all nodes together see them. The response costs a few index
        reads, whatever the number of runs, so a page may poll it every five seconds. A node
        reports every ten seconds.
        """
        answer = self._session.call(
            operations.GET_OPERATOR_STATUS,
            {},
        )
        return cast(types.OperatorStatus, answer)

    def list_runs(
        self,
        *,
        status: Optional[types.OperatorRunFilter] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.OperatorRun, types.OperatorRunList]:
        """List waiting and running work.

        Lists the runs of all accounts that have not ended, the oldest first, without prompts,
        inputs and results.
        """
        return Pages(
            self._session,
            operations.LIST_OPERATOR_RUNS,
            {
                "status": status,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def cancel_run(
        self,
        request_id: str,
    ) -> types.OperatorRun:
        """Cancel a run of any account.

        Cancels a run as its owner would: a waiting run ends at once, a running one as soon as
        its engine stops, and its tokens are released in full. Safe to repeat. The first request
        is recorded in the audit log, as `run.cancelled`.
        """
        answer = self._session.call(
            operations.CANCEL_OPERATOR_RUN,
            {
                "request_id": request_id,
            },
        )
        return cast(types.OperatorRun, answer)

    def list_people(
        self,
        *,
        q: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.OperatorPerson, types.OperatorPersonList]:
        """List people.

        Lists all people by e-mail address.
        """
        return Pages(
            self._session,
            operations.LIST_OPERATOR_PEOPLE,
            {
                "q": q,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def list_companies(
        self,
        *,
        q: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Pages[types.OperatorCompany, types.OperatorCompanyList]:
        """List companies.

        Lists all companies with their teams, in the order of their ids.
        """
        return Pages(
            self._session,
            operations.LIST_OPERATOR_COMPANIES,
            {
                "q": q,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def create_grant(
        self,
        *,
        account_id: str,
        tokens: int,
        reason: str,
        idempotency_key: Optional[str] = None,
    ) -> types.OperatorGrant:
        """Grant tokens.

        Gives tokens to the personal account of a person or to a team, or takes them back if
        `tokens` is negative. The grant is recorded in the ledger of the account and in the audit
        log, as `tokens.granted`. The `Idempotency-Key` is required and never expires: the same
        request with the same key returns the first response and grants nothing again.
        """
        answer = self._session.call(
            operations.CREATE_OPERATOR_GRANT,
            {
                "idempotency_key": idempotency_key,
            },
            body={
                "account_id": account_id,
                "tokens": tokens,
                "reason": reason,
            },
        )
        return cast(types.OperatorGrant, answer)

    def list_settings(
        self,
    ) -> Pages[types.OperatorSetting, types.OperatorSettingList]:
        """List the settings in force.

        Lists every setting of the node that answers, with its value and where the value comes
        from. Secrets are never shown: only whether they are set.
        """
        return Pages(
            self._session,
            operations.LIST_OPERATOR_SETTINGS,
            {},
        )


class Service:
    """The service itself."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_openapi(
        self,
    ) -> types.OpenAPIDocument:
        """Get the OpenAPI document.

        Returns this contract. It needs no credential.
        """
        answer = self._session.call(
            operations.GET_OPEN_API,
            {},
        )
        return cast(types.OpenAPIDocument, answer)
