// C has no groups of threads, of which %kl, %il would be a part
