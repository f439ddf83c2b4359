// C has no groups of threads, of which %ft, %ht, %jt, %it would be a part
