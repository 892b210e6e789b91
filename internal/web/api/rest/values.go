package rest

import (
	"slices"
	"time"

	"atelier/internal/file/library"
	"atelier/internal/people/company"
)

// Moment returns a time as responses have it: in UTC and whole seconds.
func Moment(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// MomentOrNull returns a time as responses have it, nil for the zero time.
func MomentOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	m := Moment(t)
	return &m
}

// TextOrNull returns nil for an empty text.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// NumberOrNull returns nil for zero.
func NumberOrNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// WholeSecondsOrNull returns a duration in seconds, nil for zero.
func WholeSecondsOrNull(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	seconds := int64(d / time.Second)
	return &seconds
}

// DecimalSeconds returns a duration in seconds to the millisecond. A single
// division returns the float64 nearest to these digits, so JSON shows no others;
// time.Duration.Seconds adds two numbers and does not.
func DecimalSeconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

// SecondsOrNull returns a duration in decimal seconds, nil for zero.
func SecondsOrNull(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	seconds := DecimalSeconds(d)
	return &seconds
}

// ClampedSeconds converts seconds of a request to a duration. It clamps them to a
// century, far beyond every limit, so that the duration does not overflow.
func ClampedSeconds(n int64) time.Duration {
	const century = 100 * 366 * 24 * 60 * 60
	return time.Duration(max(-century, min(n, century))) * time.Second
}

// ListOrEmpty returns an empty list for nil, which JSON would encode as null.
func ListOrEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ValueOrZero returns the value of an optional field, or zero if it is absent.
func ValueOrZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Convert converts each item of a list. The result is never nil, which JSON
// would encode as null.
func Convert[T, U any](list []T, convert func(T) U) []U {
	converted := make([]U, 0, len(list))
	for _, item := range list {
		converted = append(converted, convert(item))
	}
	return converted
}

// ConvertText converts between string types.
func ConvertText[U, T ~string](s T) U { return U(s) }

// PermissionFlags maps every permission in all to whether granted has it.
func PermissionFlags(all, granted []company.Permission) map[string]bool {
	flags := map[string]bool{}
	for _, p := range all {
		flags[string(p)] = slices.Contains(granted, p)
	}
	return flags
}

// MediaURL returns the signed address of a file for a viewer, nil if the
// variant does not exist.
func MediaURL(links library.URLSigner, kind library.URLKind, id, variant, viewerID string, names library.Names) *string {
	name := names.ByVariant(variant)
	if name == "" {
		return nil
	}
	address := links.SignURL(kind, id, variant, viewerID, name)
	return &address
}
