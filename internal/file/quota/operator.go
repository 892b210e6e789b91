package quota

import (
	"context"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// UsageByOperator returns the storage usage of a team, or of the personal
// account of the person with the given e-mail address.
func (l Limits) UsageByOperator(ctx context.Context, db *sqldb.DB, email, teamID string) (u Usage, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := principal.OperatorFor(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		u, err = l.AccountUsage(ctx, tx, p.AccountID)
		return err
	})
	return u, err
}

// SetLimitByOperator sets the storage limit, in bytes, of a team or of the
// personal account of the person with the given e-mail address. If limit is
// nil, the account's own limit is removed and the general setting applies.
func (l Limits) SetLimitByOperator(ctx context.Context, db *sqldb.DB, email, teamID string, limit *int64) (u Usage, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := principal.OperatorFor(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		before, err := SetLimit(ctx, tx, p.AccountID, limit)
		if err != nil {
			return err
		}
		u, err = l.AccountUsage(ctx, tx, p.AccountID)
		if err != nil {
			return err
		}
		e := p.AccountEntry(audit.StorageLimitSet)
		e.Details = map[string]string{"account": p.AccountID, "from": limitText(before), "to": limitText(limit)}
		return audit.Add(ctx, tx, e)
	})
	return u, err
}

// limitText returns a limit for the audit log: the number of bytes, or
// "default" if the account has no limit of its own.
func limitText(limit *int64) string {
	if limit == nil {
		return "default"
	}
	return strconv.FormatInt(*limit, 10)
}
