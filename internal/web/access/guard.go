package access

import (
	"context"
	"reflect"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

// Admitted is a request that Admit allowed, with the resulting principal.
type Admitted struct {
	Rule      Rule
	Presented Presented
	Principal principal.Principal
	// HasBody reports that the request has a body, which may take a long time
	// to arrive.
	HasBody bool
}

// Guard returns the check with which every transaction of an admitted request
// begins (sqldb.WithGuard). A body can take minutes to arrive, and the caller's
// credential may be revoked during that time. Therefore each write transaction
// authorizes the request again from the rows of the device, session or token,
// the person, the membership and the role, and keeps these rows locked until it
// commits. It therefore sees every revocation that has already been confirmed;
// a later revocation waits for the transaction.
//
// Read-only transactions are checked only if the request has a body. In
// requests without a body they begin right after Admit, so a second
// check is not needed.
//
// The signature and expiry of an ID token are not checked again: a token that
// expires while a body arrives was valid when the request began.
func (g *Gate) Guard(a Admitted) sqldb.Guard {
	return func(ctx context.Context, tx *sqldb.Tx) error {
		if tx.ReadOnly && !a.HasBody {
			return nil
		}
		err := g.reauthorizeRequest(ctx, tx, a)
		if fault.Is(err, fault.Forbidden) && !tx.ReadOnly {
			// After waiting for a lock, PostgreSQL returns no row if the role
			// of the membership was changed during the wait. A second statement
			// sees the current rows.
			err = g.reauthorizeRequest(ctx, tx, a)
		}
		return err
	}
}

// errRoleChanged is returned if the request is still allowed, but the caller's
// role has changed since the handler first used it.
var errRoleChanged = fault.New(fault.Unavailable, "Your role in this team changed during the request. Send the request again.").
	With("reason", "role_changed").After(time.Second)

// reauthorizeRequest authorizes the request again from the rows that tx reads.
func (g *Gate) reauthorizeRequest(ctx context.Context, tx *sqldb.Tx, a Admitted) error {
	who, err := g.readCredential(ctx, tx, a)
	if err != nil {
		return err
	}
	if who.PersonID != a.Principal.PersonID || who.Credential != a.Principal.Credential || who.Plugin != a.Principal.Plugin {
		return credential.ErrInvalid
	}
	now, err := g.authorizeRequest(ctx, tx, a.Rule, who, a.Presented)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(now.Role, a.Principal.Role) {
		return errRoleChanged
	}
	return nil
}

// readCredential reads the device, browser session or access token of the
// request again.
func (g *Gate) readCredential(ctx context.Context, tx *sqldb.Tx, a Admitted) (authenticated, error) {
	if a.Principal.Credential.Web {
		return g.identifySession(ctx, tx, a.Principal.PersonID, a.Principal.Credential.ID, a.Presented.Address)
	}
	if a.Principal.Credential.Kind == principal.IDToken {
		return g.identifyDevice(ctx, tx, a.Principal.PersonID, a.Principal.Credential.ID, a.Presented.Address)
	}
	token, _ := bearerToken(a.Presented.Authorization)
	return identifyToken(ctx, tx, token, a.Presented.Address)
}
