package person

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// Identity is who a person is at an OpenID provider.
type Identity struct {
	Issuer, Subject string
	PersonID        string
	Provider        string // its name
	Refresh         string // the provider's refresh token, sealed; "" for none
	Checked         time.Time
}

// ByIdentity returns the person that a provider knows as subject.
func ByIdentity(ctx context.Context, tx *sqldb.Tx, issuer, subject string) (Person, error) {
	id, err := identityOwner(ctx, tx, issuer, subject)
	if err != nil {
		return Person{}, err
	}
	return ByID(ctx, tx, id)
}

// StoreIdentity keeps who a person is at a provider, as of now. It locks the person:
// two sign-ins at once would take each other for another identity.
func StoreIdentity(ctx context.Context, tx *sqldb.Tx, i Identity) error {
	if err := Lock(ctx, tx, i.PersonID); err != nil {
		return err
	}
	return upsertIdentity(ctx, tx, i)
}

// RecordConfirmation records what the provider answered: it stands by the person, and this
// is its next refresh token.
func RecordConfirmation(ctx context.Context, tx *sqldb.Tx, i Identity, refresh string) error {
	_, err := storeConfirmation(ctx, tx, i, refresh)
	return err
}

// ForgetIdentity removes what the provider gave us for a person it no longer stands by.
// It is false where they signed in there anew since it was asked.
func ForgetIdentity(ctx context.Context, tx *sqldb.Tx, i Identity) (lost bool, err error) {
	return storeConfirmation(ctx, tx, i, "")
}
