package engine

// SeedOf returns the seed of a job's result number i, for engines that make
// one result at a time. Result 0 has the job's own seed, so that it equals the
// result of a job for one result. The other seeds are scattered: if they were
// consecutive, result 1 of seed 7 would equal result 0 of seed 8.
func (j Job) SeedOf(i int) uint32 {
	if i == 0 {
		return j.Seed
	}
	h := j.Seed + uint32(i)*0x9e3779b1
	h = (h ^ h>>16) * 0x7feb352d
	h = (h ^ h>>15) * 0x846ca68b
	return h ^ h>>16
}
