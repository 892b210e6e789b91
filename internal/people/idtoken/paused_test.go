package idtoken_test

import (
	"sync"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/idtoken"
	"atelier/internal/testkit/watch"
)

// TestVerifyWhileTheDatabaseHangs has many present tokens to a node that has to
// read the keys: they fail together and not one after the other, and all are
// right when the database is back.
func TestVerifyWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	server := dbtest.OwnServer(t)
	db, err := sqldb.Open(t.Context(), server.URL, sqldb.Options{MaxConns: 8, Now: time.Now, Limit: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	in := install(t, "postgres")
	o := idtoken.Options{Box: in.box, Issuer: issuer, Lifetime: lifetime, Now: time.Now}
	var tokens []string
	for range 20 {
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			token, _, err := idtoken.New(db, o).SignToken(t.Context(), tx, idtoken.Claims{PersonID: ids.New(), DeviceID: ids.New()})
			tokens = append(tokens, token)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	node := idtoken.New(db, o)

	resume := server.Pause()
	begin := time.Now()
	var group sync.WaitGroup
	for _, token := range tokens {
		group.Go(func() {
			if _, err := node.VerifyToken(t.Context(), token); !fault.Is(err, fault.Unavailable) {
				t.Errorf("during the pause: %v, want unavailable", err)
			}
		})
	}
	group.Wait()
	watch.Took(t, "20 tokens", time.Since(begin), 5*time.Second)

	resume()
	for deadline := time.Now().Add(10 * time.Second); db.Ping(t.Context()) != nil && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	for _, token := range tokens {
		group.Go(func() {
			if _, err := node.VerifyToken(t.Context(), token); err != nil {
				t.Errorf("after the pause: %v", err)
			}
		})
	}
	group.Wait()
}
