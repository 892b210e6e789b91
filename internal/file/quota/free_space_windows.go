package quota

import (
	"math"

	"golang.org/x/sys/windows"
)

// FreeSpace returns how many bytes can still be written to the disk that
// contains a folder.
func FreeSpace(folder string) (int64, error) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(min(free, math.MaxInt64)), nil
}
