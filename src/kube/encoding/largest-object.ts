/**
 * The most bytes of one object, in either encoding, alone or in a list. etcd refuses more than 1.5 MB; JSON of the same object
 * is at most a few times longer. Anything longer is garbage, or an attack on our memory.
 */
export const LARGEST_OBJECT = 16 * 1024 * 1024
