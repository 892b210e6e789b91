package pages

import (
	"fmt"
	"strings"
	"time"
)

// formatTime formats a time for people, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// formatISOTime formats a time for programs, in UTC (RFC 3339).
func formatISOTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// formatWait formats a waiting time in words. It rounds up to whole seconds, or
// to whole minutes for 2 minutes and more.
func formatWait(d time.Duration) string {
	unit := time.Second
	if d >= 2*time.Minute {
		unit = time.Minute
	}
	return formatDuration((d + unit - 1).Truncate(unit))
}

// formatDuration formats a duration in words. It uses the largest unit for
// which the number is at least two.
func formatDuration(d time.Duration) string {
	n := int64(d / time.Second)
	unit := "second"
	for _, next := range []struct {
		size int64
		unit string
	}{{60, "minute"}, {60, "hour"}, {24, "day"}} {
		if n < 2*next.size {
			break
		}
		n = n / next.size
		unit = next.unit
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// formatAmount formats a number with commas between thousands.
func formatAmount(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// browserName returns a short name for a User-Agent header. The User-Agent of
// most browsers contains the names of others, so the order of the checks
// matters.
func browserName(agent string) string {
	name := firstMatch(agent, [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
		{"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}})
	system := firstMatch(agent, [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"},
		{"Windows", "Windows"}, {"Mac OS X", "Mac"}, {"Linux", "Linux"}})
	switch {
	case agent == "":
		return "Unknown browser"
	case name == "":
		return agent
	case system == "":
		return name
	}
	return name + " on " + system
}

func firstMatch(text string, marks [][2]string) string {
	for _, m := range marks {
		if strings.Contains(text, m[0]) {
			return m[1]
		}
	}
	return ""
}
