package backend

import (
	"regexp"
	"strconv"
)

// bars are what progress bars in logs begin with (tqdm).
var bars = regexp.MustCompile(`(\d{1,3})%\s*\|`)

// Logged is what the last progress bar in a model's log says, from 0 to 1. Models
// with several bars start again at 0; what people see must not.
func Logged(log string) float64 {
	const tail = 4 << 10
	all := bars.FindAllStringSubmatch(log[max(0, len(log)-tail):], -1)
	if len(all) == 0 {
		return 0
	}
	percent, _ := strconv.Atoi(all[len(all)-1][1]) // digits only
	return min(float64(percent)/100, 1)
}
