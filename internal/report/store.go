package report

import (
	"context"
	"errors"
	"time"

	"atelier/internal/sqldb"
)

var errTODO = errors.New("not written yet")

func add(context.Context, *sqldb.Tx, Ended) error { return nil }
func usage(context.Context, *sqldb.Tx, Query, []Dimension, []string, int) ([]Row, error) {
	return nil, errTODO
}
func (r Row) keys([]Dimension) []string { return nil }
func total(context.Context, *sqldb.Tx, Query) (Count, error) {
	return Count{}, errTODO
}
func runs(context.Context, *sqldb.Tx, Query, *Place, int) ([]Run, error) { return nil, errTODO }
func spent(context.Context, *sqldb.Tx, string, string) (string, int64, error) {
	return "", 0, errTODO
}
func zone(context.Context, *sqldb.Tx, string) (*time.Location, error) { return time.UTC, nil }
func setZone(context.Context, *sqldb.Tx, string, string) error       { return errTODO }
