package person

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// Identity is a person's identity at an OpenID provider.
type Identity struct {
	Issuer, Subject string
	PersonID        string
	Provider        string // display name of the provider
	Refresh         string // the provider's refresh token, encrypted; "" if there is none
	Checked         time.Time
}

// ByIdentity returns the person with the given identity at an OpenID provider:
// an issuer and a subject.
func ByIdentity(ctx context.Context, tx *sqldb.Tx, issuer, subject string) (Person, error) {
	id, err := identityOwner(ctx, tx, issuer, subject)
	if err != nil {
		return Person{}, err
	}
	return ByID(ctx, tx, id)
}

// StoreIdentity stores a person's identity at a provider, confirmed at the
// current time. It locks the person's row: otherwise each of two concurrent
// sign-ins could mistake the identity stored by the other for a second identity
// of the person.
func StoreIdentity(ctx context.Context, tx *sqldb.Tx, i Identity) error {
	if err := Lock(ctx, tx, i.PersonID); err != nil {
		return err
	}
	return upsertIdentity(ctx, tx, i)
}

// RecordConfirmation records that the provider has confirmed the person, and
// stores the provider's next refresh token.
func RecordConfirmation(ctx context.Context, tx *sqldb.Tx, i Identity, refresh string) error {
	_, err := storeConfirmation(ctx, tx, i, refresh)
	return err
}

// ForgetIdentity deletes the refresh token of a person whom the provider no
// longer confirms. It returns false if the person has signed in with the
// provider again since the request to the provider.
func ForgetIdentity(ctx context.Context, tx *sqldb.Tx, i Identity) (lost bool, err error) {
	return storeConfirmation(ctx, tx, i, "")
}
