package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span is a duration, written like 90s or 10m, or as a plain number of seconds.
type Span time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		if n > int64(math.MaxInt64/time.Second) || n < -int64(math.MaxInt64/time.Second) {
			return fmt.Errorf("the duration %s is too long", text)
		}
		*s = Span(n) * Span(time.Second)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 10m or 600 (seconds)", text)
	}
	*s = Span(d)
	return nil
}

// String returns the duration in a form that UnmarshalText accepts.
func (s Span) String() string { return time.Duration(s).String() }

// Size is a number of bytes, written as a plain number or with KB, MB or GB,
// which mean powers of 1024.
type Size int64

var units = []struct {
	suffix string
	shift  uint
}{{"KB", 10}, {"MB", 20}, {"GB", 30}}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.ToUpper(string(text))
	shift := uint(0)
	for _, u := range units {
		if d, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits = strings.TrimSpace(d)
			shift = u.shift
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64>>shift || n < 0 {
		return fmt.Errorf("%q is not a number of bytes such as 52428800 or 50MB", text)
	}
	*s = Size(n << shift)
	return nil
}

// String returns the size in a form that UnmarshalText accepts.
func (s Size) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; s > 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s)>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
