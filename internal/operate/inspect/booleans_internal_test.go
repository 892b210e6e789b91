package inspect

import (
	"slices"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestSealedBooleansAreNamed compares the columns that sealed tables name as
// booleans with the types of the columns. Without the name, the seal of a row
// that comes from the other kind of database would not be valid.
func TestSealedBooleansAreNamed(t *testing.T) {
	t.Parallel()
	found, err := dbtest.Open(t, dbtest.URL(t, "sqlite")).Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sealed := range tables {
		at := slices.IndexFunc(found, func(one sqldb.Table) bool { return one.Name == sealed.Name })
		if at < 0 {
			t.Errorf("there is no table %s", sealed.Name)
			continue
		}
		for _, name := range sealed.Columns {
			is := slices.Contains(found[at].Columns, sqldb.TableColumn{Name: name, Kind: sqldb.KindBoolean})
			if is != slices.Contains(sealed.Booleans, name) {
				t.Errorf("%s.%s is a boolean: %v, named as one: %v", sealed.Name, name, is, !is)
			}
		}
	}
}
