package rest

import (
	"slices"
	"time"

	"atelier/internal/file/library"
	"atelier/internal/people/company"
)

// Moment converts a time to the form of API responses: UTC, truncated to
// seconds.
func Moment(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// MomentOrNull is like Moment, but returns nil for the zero time.
func MomentOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	m := Moment(t)
	return &m
}

// TextOrNull returns a pointer to s, or nil if s is empty.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// NumberOrNull returns a pointer to n, or nil if n is zero.
func NumberOrNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// WholeSecondsOrNull returns a duration in seconds, truncated to an integer.
// It returns nil for zero.
func WholeSecondsOrNull(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	seconds := int64(d / time.Second)
	return &seconds
}

// DecimalSeconds returns a duration in seconds, rounded to milliseconds. A
// single division gives the float64 nearest to the decimal number, so JSON
// shows at most three decimals; time.Duration.Seconds adds two floats and can
// show more.
func DecimalSeconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

// SecondsOrNull is like DecimalSeconds, but returns nil for zero.
func SecondsOrNull(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	seconds := DecimalSeconds(d)
	return &seconds
}

// ClampedSeconds converts a number of seconds in a request to a duration. It
// limits the number to a century, far beyond every limit of the API, so that
// the duration does not overflow.
func ClampedSeconds(n int64) time.Duration {
	const century = 100 * 366 * 24 * 60 * 60
	return time.Duration(max(-century, min(n, century))) * time.Second
}

// ListOrEmpty returns list, or an empty list instead of nil, which JSON would
// encode as null.
func ListOrEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ValueOrZero returns the value of an optional field, or its zero value if it
// is absent.
func ValueOrZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Convert applies convert to each item of a list. The result is never nil,
// which JSON would encode as null.
func Convert[T, U any](list []T, convert func(T) U) []U {
	converted := make([]U, 0, len(list))
	for _, item := range list {
		converted = append(converted, convert(item))
	}
	return converted
}

// ConvertText converts a value of one string type to another.
func ConvertText[U, T ~string](s T) U { return U(s) }

// PermissionFlags maps every permission in all to whether it is in granted.
func PermissionFlags(all, granted []company.Permission) map[string]bool {
	flags := map[string]bool{}
	for _, p := range all {
		flags[string(p)] = slices.Contains(granted, p)
	}
	return flags
}

// MediaURL returns the signed URL with which a person can view a file. It
// returns nil if the file does not have the variant.
func MediaURL(links library.URLSigner, kind library.URLKind, id, variant, viewerID string, names library.Names) *string {
	name := names.ByVariant(variant)
	if name == "" {
		return nil
	}
	address := links.SignURL(kind, id, variant, viewerID, name)
	return &address
}
