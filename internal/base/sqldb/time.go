package sqldb

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a time that is stored in a BIGINT column as microseconds since 1970
// in UTC. The zero time is NULL. Both databases store and compare it in the
// same way.
type Time struct{ time.Time }

// At returns t as a column value.
func At(t time.Time) Time { return Time{t} }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("scan time: the column has the type %T, not a number", src)
	}
	return nil
}
