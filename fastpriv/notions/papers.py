"""How sources are cited."""

WANG, MAKHDOUMI = "Wang-Ying-Zhang 2015", "Makhdoumi-Fawaz 2013"
WU, SAEIDIAN = "Wu-Xia-He 2020", "Saeidian et al. 2024"
ISSA = "Issa et al. 2019"
