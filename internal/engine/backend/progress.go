package backend

import (
	"regexp"
	"strconv"
)

// progressBars match progress bars in logs (tqdm).
var progressBars = regexp.MustCompile(`(\d{1,3})%\s*\|`)

// ProgressInLog returns the progress of the last progress bar in a model's log, from 0 to 1.
// Models with several bars start again at 0; callers must not show that.
func ProgressInLog(log string) float64 {
	const tail = 4 << 10
	all := progressBars.FindAllStringSubmatch(log[max(0, len(log)-tail):], -1)
	if len(all) == 0 {
		return 0
	}
	percent, _ := strconv.Atoi(all[len(all)-1][1]) // the pattern allows only digits
	return min(float64(percent)/100, 1)
}
