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

// Admitted is a request that Admit allowed, with the decision about it.
type Admitted struct {
	Rule      Rule
	Presented Presented
	Principal principal.Principal
	// HasBody says that the request has a body, which may take long to arrive.
	HasBody bool
}

// Guard returns the check that every transaction of an admitted request begins
// with (sqldb.WithGuard). A body can take minutes to arrive, and whoever sent it
// may have been revoked meanwhile: so each transaction that changes something
// decides anew, on the rows of the device or token, the person, the membership
// and the role, and keeps them locked until it commits. A revocation that was
// answered is therefore always seen, and one that comes later waits.
//
// Transactions that only read are checked where the request has a body; without
// one they begin right after Admit.
//
// What an ID token's signature said is not asked again: a token that expires
// while a body arrives was valid when it was presented.
func (g *Gate) Guard(a Admitted) sqldb.Guard {
	return func(ctx context.Context, tx *sqldb.Tx) error {
		if tx.ReadOnly && !a.HasBody {
			return nil
		}
		err := g.reauthorizeRequest(ctx, tx, a)
		if fault.Is(err, fault.Forbidden) && !tx.ReadOnly {
			// PostgreSQL returns no row where the one that it waited for now belongs
			// to another role. A second statement sees what is there now.
			err = g.reauthorizeRequest(ctx, tx, a)
		}
		return err
	}
}

// errRoleChanged is why a request ends that would be admitted again, but with
// another role than the one its handler has been working with.
var errRoleChanged = fault.New(fault.Unavailable, "Your role in this team changed while the request was under way. Send it again.").
	With("reason", "role_changed").After(time.Second)

// reauthorizeRequest makes the decision of Admit again on the rows as tx has them.
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

// readCredential reads the credential's rows again.
func (g *Gate) readCredential(ctx context.Context, tx *sqldb.Tx, a Admitted) (authenticated, error) {
	if a.Principal.Credential.Kind == principal.IDToken {
		return g.identifyDevice(ctx, tx, a.Principal.PersonID, a.Principal.Credential.ID, a.Presented.Address)
	}
	token, _ := bearerToken(a.Presented.Authorization)
	return identifyToken(ctx, tx, token, a.Presented.Address)
}
