package backend

import (
	"regexp"
	"strconv"
)

// progressBars matches the percentage of progress bars in logs, as the Python
// package tqdm prints them.
var progressBars = regexp.MustCompile(`(\d{1,3})%\s*\|`)

// ProgressInLog returns the progress of the last progress bar in a model's
// log, from 0 to 1. If a model prints several bars, the progress starts again
// at 0 for each; callers must not show such a decrease.
func ProgressInLog(log string) float64 {
	const tail = 4 << 10
	all := progressBars.FindAllStringSubmatch(log[max(0, len(log)-tail):], -1)
	if len(all) == 0 {
		return 0
	}
	percent, _ := strconv.Atoi(all[len(all)-1][1]) // the pattern allows only digits
	return min(float64(percent)/100, 1)
}
