package engine

// SeedOf gives the seed of the ith result of a job, for engines that make one
// at a time. The first has the job's own, so it is what a job for one result
// gives. The others are spread out: were they counted on, the second result of
// seed 7 would be the first of seed 8.
func (j Job) SeedOf(i int) uint32 {
	if i == 0 {
		return j.Seed
	}
	h := j.Seed + uint32(i)*0x9e3779b1
	h = (h ^ h>>16) * 0x7feb352d
	h = (h ^ h>>15) * 0x846ca68b
	return h ^ h>>16
}
