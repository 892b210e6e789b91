import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Tag } from '../ui/Chip';
import { formatDay } from '../ui/format';
import { ReasonButton } from '../ui/ReasonButton';
import { type Column, Table } from '../ui/Table';

/** Membership is a person in a company or a team. */
export type Membership = { uid: string; email: string; role: string; joined: string };

type Props<T extends Membership> = {
  members: T[];
  /** The person who looks. */
  uid: string;
  /** Why the person cannot change a member, if that is so. */
  refuse: (member: T) => string | undefined;
  more?: Column<T>[];
  onChangeRole: (member: T) => void;
  onRemove: (member: T) => void;
};

/** MemberTable lists the members of a company or a team. Everybody can leave; changing others can be refused. */
export function MemberTable<T extends Membership>({
  members,
  uid,
  refuse,
  more = [],
  onChangeRole,
  onRemove,
}: Props<T>) {
  return (
    <Table
      label={text.members}
      rows={members}
      keyOf={(member) => member.uid}
      columns={[
        {
          head: text.memberEmail,
          cell: (member) => (
            <span className="row">
              {member.email}
              {member.uid === uid && <Tag tone="hot">{shared.you}</Tag>}
            </span>
          ),
        },
        { head: text.memberRole, cell: (member) => <Tag>{member.role}</Tag> },
        ...more,
        { head: text.memberSince, cell: (member) => formatDay(member.joined), wideOnly: true },
        {
          head: shared.actions,
          quiet: true,
          end: true,
          cell: (member) => (
            <span className="row">
              <span className="grow" />
              <ReasonButton
                small
                aria-label={text.changeRoleTitle(member.email)}
                reason={refuse(member)}
                onClick={() => onChangeRole(member)}
              >
                {text.changeRole}
              </ReasonButton>
              <ReasonButton
                small
                kind="danger"
                aria-label={member.uid === uid ? undefined : text.removeOne(member.email)}
                reason={member.uid === uid ? undefined : refuse(member)}
                onClick={() => onRemove(member)}
              >
                {member.uid === uid ? text.leave : text.remove}
              </ReasonButton>
            </span>
          ),
        },
      ]}
    />
  );
}
